-- Bringing back what a clean has found, and counting that.
--
-- Uses: guards

-- By ID, how often a clean has brought it back. A field that is no number counts as none.
local function returns_of(ids)
  local values, counts = {}, {}
  if present[returns] and #ids > 0 then
    values = redis.call('HMGET', returns, unpack(ids))
  end
  for i, id in ipairs(ids) do
    local digits = values[i] and string.match(values[i], '^%d+$')
    counts[id] = digits and #digits < 16 and tonumber(digits) or 0
  end
  return counts
end

-- The error for what `bring_back` may not do, or nil.
local function denied_to_bring_back(bury_after)
  return denied({ 'LPUSH', main, 'x' }, { 'HSET', returns, 'x', '1' })
    or (bury_after >= 0 and denied(
      { 'ZADD', buried, '1', 'x' },
      { 'MSET', lease_prefix .. 'x', 'x' },
      { 'MSET', old_lease_prefix .. 'x', 'x' }
    ) or nil)
end

-- Put items that a clean took off processing, or found in no list, onto main, and count that; those
-- that are buried instead keep their order, too.
--
-- counts      what `returns_of` says of them; read before the caller's first write
-- bury_after  what came back so often already is buried instead, which is not counted; -1 for never
-- Returns, by ID, whether it was buried.
local function bring_back(ids, counts, bury_after)
  local back, counted, put_away, guards, is_buried = {}, {}, {}, {}, {}
  local now_ms = clock_ms()
  for i, id in ipairs(ids) do
    local count = counts[id]
    if bury_after >= 0 and count >= bury_after then
      is_buried[id] = true
      put_away[#put_away + 1] = as_ms(now_ms + i / 1000)
      put_away[#put_away + 1] = id
      -- As `guard_buried` does, for all of them in one call.
      local holder = string.format('rwq-buried:returned %d time%s', count, count == 1 and '' or 's')
      for _, key in ipairs({ lease_prefix .. id, old_lease_prefix .. id }) do
        guards[#guards + 1] = key
        guards[#guards + 1] = holder
      end
    else
      back[#back + 1] = id
      counted[#counted + 1] = id
      counted[#counted + 1] = string.format('%.0f', count + 1)
    end
  end
  for_all('HSET', returns, counted)
  for_all('MSET', nil, guards)
  for_all('ZADD', buried, put_away)
  for_all('LPUSH', main, back)
  return is_buried
end
