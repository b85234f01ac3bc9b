-- The outcome that is kept of what is completed.
--
-- Uses: guards

-- What a completion has to know about results before its first write.
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
  local asked = {}
  for i, id in ipairs(ids) do
    asked[i] = result_prefix .. id
  end
  -- Nearly never is there one: of an earlier item with this ID.
  local some_are_there = for_all('EXISTS', nil, asked) > 0
  local refusal = (some_are_there and denied({ 'DEL', probe }))
    or (keeps and denied({ 'HSET', probe, 'x', 'x' }, { 'PEXPIRE', probe, 1 }))
  if refusal then
    return nil, refusal
  end
  if some_are_there then
    known.old = {}
    for i, id in ipairs(ids) do
      local kind = redis.call('TYPE', asked[i]).ok
      if keeps and exists[id] and kind ~= 'none' and kind ~= 'hash' then
        return nil, redis.error_reply('WRONGTYPE ' .. asked[i]
          .. ' holds another type than the protocol says: a ' .. kind .. ' and not a hash')
      end
      known.old[id] = kind == 'hash'
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
