-- Put items in as they were: with their data, place, lease, times and returns.
--
-- arg 1     what to do with an ID that exists with other data: 'fail' | 'skip' | 'replace'
-- arg 2     '1' to put each of main before all that wait, '0' behind them
-- arg 3     how many may be taken off the lists first, which costs their length: what is replaced, and
--           entries that have no data, which would come back to life
-- arg 4..   for each item: ID; '1' if such an entry may be in a list, else '0'; data; place (m main,
--           p processing, - neither); holder; ms left of its lease (-1 no expiry, -2 none); due and
--           buried at, unix ms, or ''; its returns, or ''
-- Returns { statuses }: a letter for each item in order, i imported, h already there with these data,
-- s skipped, p replaced, f it exists with other data, y its data key holds another type. Fewer letters
-- than items: arg 3 was used up, and those behind have to wait for the next call.
-- Uses: guards
local refusal = denied(
  { 'SET', item_prefix .. 'x', 'x' },
  { 'GET', item_prefix .. 'x' },
  { 'LPUSH', main, 'x' },
  { 'RPUSH', main, 'x' },
  { 'LPUSH', processing, 'x' },
  { 'LREM', main, 0, 'x' },
  { 'LREM', processing, 0, 'x' },
  { 'LREM', cleaning, 0, 'x' },
  { 'ZADD', delayed, 0, 'x' },
  { 'ZADD', buried, 0, 'x' },
  { 'ZREM', delayed, 'x' },
  { 'ZREM', buried, 'x' },
  { 'HSET', returns, 'x', 1 },
  { 'HDEL', returns, 'x' },
  { 'SET', lease_prefix .. 'x', 'x' },
  { 'SET', old_lease_prefix .. 'x', 'x' },
  { 'DEL', lease_prefix .. 'x' },
  { 'DEL', old_lease_prefix .. 'x' }
)
if refusal then
  return refusal
end
local on_conflict, at_front, removals_left = arg(1), arg(2) == '1', tonumber(arg(3))
local words = args_from(4)
local FIELDS = 9
local letters, taken, taken_ids, listed, seen = {}, {}, {}, {}, {}
for at = 1, #words, FIELDS do
  local id, data = words[at], words[at + 2]
  local kind = redis.call('TYPE', item_prefix .. id).ok
  local letter = 'i'
  if seen[id] then
    letter = seen[id] == data and 'h' or 'f'
  elseif kind ~= 'none' and kind ~= 'string' then
    letter = 'y'
  elseif kind == 'string' then
    if redis.call('GET', item_prefix .. id) == data then
      letter = 'h'
    else
      letter = on_conflict == 'skip' and 's' or on_conflict == 'replace' and 'p' or 'f'
    end
  end
  if letter == 'p' or (letter == 'i' and words[at + 1] == '1') then
    if removals_left == 0 then
      break
    end
    removals_left = removals_left - 1
    listed[#listed + 1] = id
  end
  if letter == 'i' or letter == 'p' then
    taken[#taken + 1] = at
    taken_ids[#taken_ids + 1] = id
    seen[id] = data
  end
  letters[#letters + 1] = letter
end
-- All is read; now the writes.
for _, id in ipairs(listed) do
  redis.call('LREM', main, 0, id)
  redis.call('LREM', processing, 0, id)
end
-- Also of a new one something may be left: a lease, or the time of an ID that was completed.
forget(taken_ids)
local for_main, for_processing = {}, {}
local now_ms = clock_ms()
for _, at in ipairs(taken) do
  local id, _, data, place, holder, ttl, due, buried_at, count = unpack(words, at, at + FIELDS - 1)
  redis.call('SET', item_prefix .. id, data)
  if due ~= '' and tonumber(ttl) >= 0 and is_delayed_guard(holder) then
    -- What was left of it then may be too little by this server's clock.
    local _, needed = delayed_guard(tonumber(due), now_ms)
    ttl = string.format('%.0f', math.max(tonumber(ttl), tonumber(needed)))
  end
  if ttl == '-1' then
    redis.call('SET', lease_prefix .. id, holder)
    redis.call('SET', old_lease_prefix .. id, holder)
  elseif ttl ~= '-2' then
    set_lease(id, holder, ttl)
  end
  if due ~= '' then
    redis.call('ZADD', delayed, due, id)
  end
  if buried_at ~= '' then
    redis.call('ZADD', buried, buried_at, id)
  end
  if count ~= '' then
    redis.call('HSET', returns, id, count)
  end
  if place == 'm' then
    for_main[#for_main + 1] = id
  elseif place == 'p' then
    for_processing[#for_processing + 1] = id
  end
end
for_all(at_front and 'RPUSH' or 'LPUSH', main, for_main)
for_all('LPUSH', processing, for_processing)
return { table.concat(letters) }
