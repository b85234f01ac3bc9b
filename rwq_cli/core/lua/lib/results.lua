-- The outcome that is kept of what is completed.
--
-- Uses: guards

local VERDICTS = { completed = true, rejected = true }

-- What is under the key of a result: 'none', 'result', or the type of what is no result of ours. A hash
-- may be that of a queue whose name begins like our results.
local function result_kind(key)
  local kind = redis.call('TYPE', key).ok
  if kind == 'hash' then
    local status, completed_ms = unpack(redis.call('HMGET', key, 'status', 'completed_ms'))
    if VERDICTS[status] and string.match(completed_ms or '', '^-?%d+$') then
      return 'result'
    end
  end
  return kind
end

local function no_result(key, kind)
  return redis.error_reply('WRONGTYPE ' .. key .. ' holds another type than the protocol says: a '
    .. kind .. ' and not ' .. (kind == 'hash' and 'one of results' or 'a hash'))
end

-- Whether this user may see what is under the keys of results: servers before Redis 7 tell it only
-- when one is looked at.
local function may_see_results(probe)
  if redis.acl_check_cmd then
    return not denied({ 'EXISTS', probe }, { 'TYPE', probe }, { 'HMGET', probe, 'x' })
  end
  return type(redis.pcall('EXISTS', probe)) == 'number'
end

-- What a completion has to know about results before its first write. A user who may not see results,
-- and wants none kept, completes as if there were none.
--
-- ids         those that it may complete
-- exists      by ID, whether it has data: without them there is nothing to complete
-- keep_ms     how long to keep their outcome, ms; '' where none is kept
-- status      what the outcome says: 'completed' | 'rejected'
-- result      the result, or nil for an outcome without one
-- Returns what `settle_results` needs, and nil; or nil and the error.
local function prepare_results(ids, exists, keep_ms, status, result)
  local keeps, probe = keep_ms ~= '', result_prefix .. 'x'
  local known = { exists = exists, keep_ms = keep_ms, status = status, result = result }
  if not keeps and not may_see_results(probe) then
    return known, nil
  end
  local refusal = keeps and denied({ 'EXISTS', probe }, { 'TYPE', probe }, { 'HMGET', probe, 'x' },
    { 'HSET', probe, 'x', 'x' }, { 'PEXPIRE', probe, 1 })
  if refusal then
    return nil, refusal
  end
  local asked = {}
  for i, id in ipairs(ids) do
    asked[i] = result_prefix .. id
  end
  -- Nearly never is there one: of an earlier item with this ID.
  if for_all('EXISTS', nil, asked) > 0 then
    known.old = {}
    for i, id in ipairs(ids) do
      local kind = result_kind(asked[i])
      if keeps and exists[id] and kind ~= 'none' and kind ~= 'result' then
        return nil, no_result(asked[i], kind)
      end
      known.old[id] = kind == 'result'
    end
    refusal = denied({ 'DEL', probe })
    if refusal then
      return nil, refusal
    end
  end
  if keeps then
    known.holders = lease_holders(ids)
    known.now_ms = string.format('%.0f', math.floor(clock_ms()))
  end
  return known, nil
end

-- Keep the outcome of those IDs that had data and so were completed; and no result of an earlier item
-- with such an ID, which would be taken for theirs.
local function settle_results(ids, known)
  if not known.old and known.keep_ms == '' then
    return
  end
  local completed, outdated = {}, {}
  for _, id in ipairs(ids) do
    if known.exists[id] then
      completed[#completed + 1] = id
      if known.old and known.old[id] then
        outdated[#outdated + 1] = result_prefix .. id
      end
    end
  end
  for_all('DEL', nil, outdated)
  if known.keep_ms == '' then
    return
  end
  for _, id in ipairs(completed) do
    local key, holder = result_prefix .. id, known.holders[id]
    redis.call('HSET', key, 'status', known.status, 'completed_ms', known.now_ms)
    if known.result then
      redis.call('HSET', key, 'result', known.result)
    end
    if holder and holder ~= '' and not is_guard(holder) and not is_cleaning_guard(holder) then
      redis.call('HSET', key, 'holder', holder)
    end
    redis.call('PEXPIRE', key, known.keep_ms)
  end
end
