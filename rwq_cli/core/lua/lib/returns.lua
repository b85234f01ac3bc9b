-- Returning items that a clean found, and counting how often.

-- By ID, how often a clean returned it. A field that is no number counts as none.
local function returns_of(ids)
  local values, counts = {}, {}
  if present[returns] and #ids > 0 then
    values = read_all('HMGET', returns, ids)
  end
  for i, id in ipairs(ids) do
    local digits = values[i] and string.match(values[i], '^%d+$')
    counts[id] = digits and #digits < 16 and tonumber(digits) or 0
  end
  return counts
end

-- By ID, whether it is to be buried instead of returned: it came back `bury_after` times already; -1
-- for never.
local function worn_out(counts, bury_after)
  local buries = {}
  for id, count in pairs(counts) do
    buries[id] = bury_after >= 0 and count >= bury_after
  end
  return buries
end

-- Push items that are in no list any more onto main, in this order, and count that; those that are
-- worn out are buried, and not counted.
local function return_all(ids, counts, buries)
  local pushed, fields, scores, guards = {}, {}, {}, {}
  local now_ms = clock_ms()
  for i, id in ipairs(ids) do
    local count = counts[id]
    if buries[id] then
      scores[#scores + 1] = as_ms(now_ms + i / 1000)
      scores[#scores + 1] = id
      -- As `guard_buried` does, for all of them in one call.
      local value = string.format('rwq-buried:returned %d time%s', count, count == 1 and '' or 's')
      for _, key in ipairs(lease_keys({ id })) do
        guards[#guards + 1] = key
        guards[#guards + 1] = value
      end
    else
      pushed[#pushed + 1] = id
      fields[#fields + 1] = id
      fields[#fields + 1] = string.format('%.0f', count + 1)
    end
  end
  for_all('HSET', returns, fields)
  for_all('MSET', nil, guards)
  for_all('ZADD', buried, scores)
  push(pushed, 'returned')
end
