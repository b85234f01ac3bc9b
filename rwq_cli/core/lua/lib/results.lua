-- The results of completed items. DIGITS_MAX is made from `core/model.py`.
--
-- include: facts
-- writes read_results: result EXISTS TYPE HMGET
-- writes keep_results: result EXISTS TYPE HMGET HSET PEXPIRE; server TIME
-- writes delete_results: result DEL

local RESULT_STATUSES = { completed = true, rejected = true }

-- What a result key holds: 'none', 'result', or the type of a key that is not a result. A hash may belong
-- to a queue whose name begins like this queue's result keys.
local function result_kind(key)
  local kind = redis.call('TYPE', key).ok
  if kind == 'hash' then
    local status, completed_ms = unpack(redis.call('HMGET', key, 'status', 'completed_ms'))
    if RESULT_STATUSES[status] and string.match(completed_ms or '', '^%d+$') and #completed_ms <= DIGITS_MAX then
      return 'result'
    end
  end
  return kind
end

-- Whether this user may read result keys. Before Redis 7, only reading one shows that.
local function may_read_results(probe)
  if redis.acl_check_cmd then
    return not denied('read_results')
  end
  return type(redis.pcall('EXISTS', probe)) == 'number'
end

-- Check everything about results before the first write of a completion, and read what it needs. A user who
-- may not read results can still complete items without keeping results, as if there were none.
--
-- ids         the IDs that it may complete
-- facts       by ID
-- keep_ms     how long to keep the results, ms; '' to keep none
-- status      whether the item was done or given up: 'completed' | 'rejected'
-- result      the data of the results, or nil for none
-- Returns the argument of `write_results`, and nil; or nil and the error. In the former, `wrong` has the IDs, as
-- keys, that must not be completed, because their results cannot be kept: something else has the result key.
local function prepare_results(ids, facts, keep_ms, status, result)
  local keeps = keep_ms ~= ''
  local known = { wrong = {}, holders = {}, keep_ms = keep_ms, status = status, result = result }
  if not keeps and not may_read_results(result_prefix .. 'x') then
    return known, nil
  end
  local refusal = keeps and not dry_run and denied('keep_results')
  if refusal then
    return nil, refusal
  end
  local keys = prefixed(result_prefix, ids)
  -- Rarely, an earlier item with this ID has left a result.
  if for_all('EXISTS', nil, keys) > 0 then
    known.earlier = {}
    for i, id in ipairs(ids) do
      local kind = result_kind(keys[i])
      if keeps and facts[id].data == 'string' and kind ~= 'none' and kind ~= 'result' then
        known.wrong[id] = true
      end
      known.earlier[id] = kind == 'result'
    end
    refusal = not dry_run and denied('delete_results')
    if refusal then
      return nil, refusal
    end
  end
  if keeps then
    known.now_ms = whole_ms(clock_ms())
    for _, id in ipairs(ids) do
      known.holders[id] = session_of(facts[id])
    end
  end
  return known, nil
end

-- Keep the results of completed IDs, and delete the results of earlier items with the same IDs.
local function write_results(completed, known)
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
    if holder and holder ~= '' then
      redis.call('HSET', key, 'holder', holder)
    end
    redis.call('PEXPIRE', key, known.keep_ms)
  end
end
