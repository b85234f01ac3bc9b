-- Returning the items that a clean found, and counting their returns.

-- By ID, how often a clean returned it; nil for never, and for a field that is not a number.
local function returns_of(ids)
  local counts = {}
  if present[returns] and #ids > 0 then
    local values = read_all('HMGET', returns, ids)
    for i = 1, #ids do
      local digits = values[i] and string.match(values[i], '^%d+$')
      counts[ids[i]] = digits and #digits < 16 and tonumber(digits) or nil
    end
  end
  return counts
end

-- Whether to bury an ID instead of returning it: it was already returned `bury_after` times; -1 for
-- never.
local function is_to_be_buried(id, counts, bury_after)
  return bury_after >= 0 and (counts[id] or 0) >= bury_after
end

-- Count the returns of items, and set their settling leases; or set guards for the items that are buried
-- instead, which are not counted. This must be the first write, as in `settle_ids`. Returns the items to
-- push, and the scores and items to bury.
local function begin_returns(ids, counts, bury_after)
  local pushed, fields, scores, guards = {}, {}, {}, {}
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
      fields[#fields + 1] = id
      fields[#fields + 1] = count == 0 and '1' or string.format('%.0f', count + 1)
    end
  end
  settle_ids(pushed, 'returned')
  for_all('MSET', nil, guards)
  for_all('HSET', returns, fields)
  return pushed, scores
end

-- Push and bury the items from `begin_returns`; the caller has removed them from every structure.
local function end_returns(pushed, scores)
  for_all('ZADD', buried, scores)
  push(pushed)
end
