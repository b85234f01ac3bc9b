-- Counting how often items were returned: by a clean, or after a failed attempt. And returning what a clean found.
--
-- include: schedule
-- writes count_returns: returns HMGET HSET

-- By ID, how often it was returned; nil for never, and for a field that is not a number. DIGITS_MAX is made from
-- `core/model.py`.
local function returns_of(ids)
  local counts = {}
  if present[returns] and #ids > 0 then
    local values = read_all('HMGET', returns, ids)
    for i = 1, #ids do
      local digits = values[i] and string.match(values[i], '^%d+$')
      counts[ids[i]] = digits and #digits <= DIGITS_MAX and tonumber(digits) or nil
    end
  end
  return counts
end

-- Whether to bury an ID instead of returning it: it was already returned `bury_after` times; -1 for
-- never.
local function is_to_be_buried(id, counts, bury_after)
  return bury_after >= 0 and (counts[id] or 0) >= bury_after
end

-- Count one more return of each item. The value is computed here, because HINCRBY fails on a field that is not
-- a number.
local function count_returns(ids, counts)
  local fields = {}
  for i = 1, #ids do
    fields[2 * i - 1] = ids[i]
    fields[2 * i] = string.format('%.0f', (counts[ids[i]] or 0) + 1)
  end
  for_all('HSET', returns, fields)
end

-- Count the returns of items, and set their settling leases; or set guards for the items that are buried
-- instead, which are not counted. This must be the first write, as in `settle_ids`. Returns the items to
-- push, and the scores and items to bury.
local function begin_returns(ids, counts, bury_after)
  local pushed, scores, guards = {}, {}, {}
  local now_ms = clock_ms()
  for i = 1, #ids do
    local id = ids[i]
    local count = counts[id] or 0
    if is_to_be_buried(id, counts, bury_after) then
      scores[#scores + 1] = as_ms(now_ms + i / 1000)
      scores[#scores + 1] = id
      -- As `guard_buried` does, for all of them in one call.
      local value = GUARDS.buried .. string.format('returned %d time%s', count, count == 1 and '' or 's')
      for _, key in ipairs(lease_keys({ id })) do
        guards[#guards + 1] = key
        guards[#guards + 1] = value
      end
    else
      pushed[#pushed + 1] = id
    end
  end
  settle_ids(pushed, 'returned')
  for_all('MSET', nil, guards)
  count_returns(pushed, counts)
  return pushed, scores
end

-- Push and bury the items from `begin_returns`; the caller has removed them from every structure.
local function end_returns(pushed, scores)
  for_all('ZADD', buried, scores)
  push(pushed)
end
