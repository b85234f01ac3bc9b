-- The outcome that is kept of a completed item.

local VERDICTS = { completed = true, rejected = true }

-- What a result key holds: 'none', 'result', or the type of what is no result of ours. A hash may
-- belong to a queue whose name begins like our result keys.
local function result_kind(key)
  local kind = redis.call('TYPE', key).ok
  if kind == 'hash' then
    local status, completed_ms = unpack(redis.call('HMGET', key, 'status', 'completed_ms'))
    if VERDICTS[status] and string.match(completed_ms or '', '^%d+$') and #completed_ms < 16 then
      return 'result'
    end
  end
  return kind
end

local function wrong_result(key, kind)
  return wrong_type(key, kind, kind == 'hash' and 'one of results' or 'a hash')
end

-- Whether this user may read result keys. Servers before Redis 7 say so only when one is read.
local function may_read_results(probe)
  if redis.acl_check_cmd then
    return not denied('read_results')
  end
  return type(redis.pcall('EXISTS', probe)) == 'number'
end

-- What a completion has to know about results before its first write. A user who may not read results,
-- and wants none kept, completes as if there were none.
--
-- ids         those that it may complete
-- facts       by ID
-- keep_ms     how long to keep their outcome, ms; '' to keep none
-- status      what the outcome says: 'completed' | 'rejected'
-- result      the result, or nil for an outcome without one
-- Returns what `settle_results` needs, and nil; or nil and the error.
local function prepare_results(ids, facts, keep_ms, status, result)
  local keeps = keep_ms ~= ''
  local known = { holders = {}, keep_ms = keep_ms, status = status, result = result }
  if not keeps and not may_read_results(result_prefix .. 'x') then
    return known, nil
  end
  local refusal = keeps and denied('keep_results')
  if refusal then
    return nil, refusal
  end
  local keys = prefixed(result_prefix, ids)
  -- Hardly ever is there one: of an earlier item with this ID.
  if for_all('EXISTS', nil, keys) > 0 then
    known.earlier = {}
    for i, id in ipairs(ids) do
      local kind = result_kind(keys[i])
      if keeps and facts[id].data == 'string' and kind ~= 'none' and kind ~= 'result' then
        return nil, wrong_result(keys[i], kind)
      end
      known.earlier[id] = kind == 'result'
    end
    refusal = denied('delete_results')
    if refusal then
      return nil, refusal
    end
  end
  if keeps then
    known.now_ms = string.format('%.0f', math.floor(clock_ms()))
    for _, id in ipairs(ids) do
      known.holders[id] = session_of(facts[id])
    end
  end
  return known, nil
end

-- Keep the outcome of completed IDs; and delete the result of an earlier item with such an ID, which
-- would be taken for theirs.
local function settle_results(completed, known)
  local outdated = {}
  for _, id in ipairs(known.earlier and completed or {}) do
    if known.earlier[id] then
      outdated[#outdated + 1] = result_prefix .. id
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
    if holder and holder ~= '' and not is_claim(holder) then
      redis.call('HSET', key, 'holder', holder)
    end
    redis.call('PEXPIRE', key, known.keep_ms)
  end
end
