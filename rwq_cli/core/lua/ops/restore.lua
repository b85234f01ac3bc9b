-- Put items in as they were: with their data, place, lease, times and returns.
--
-- arg 1     a value that is no ID, unique to this run of the caller
-- arg 2     what to do with an ID that exists with other data: 'fail' | 'skip' | 'replace'
-- arg 3     '1' to put each of main before all that wait, '0' behind them
-- arg 4     how many may be taken off the lists first, which costs their length: those that are replaced,
--           and entries without data, which would come back to life
-- arg 5..   for each item: ID; '1' if such an entry may be in a list, else '0'; data; place ('main',
--           'processing' or 'none'); holder; ms left of its lease (-1 no expiry, -2 none); due time and
--           time of burial, unix ms, or ''; its returns, or ''
-- Returns the outcomes of `outcome_reply`: imported, already-there with these data, skipped, replaced,
-- conflict for other data, wrong-type. Fewer outcomes than items: arg 4 was used up, and the others have
-- to wait for the next call.
local mark, on_conflict, at_front, removals_left = arg(1), arg(2), arg(3) == '1', tonumber(arg(4))
local words = args_from(5)
local FIELDS = 9
local ids, outcomes, restored, restored_ids, listed, seen = {}, {}, {}, {}, {}, {}
for at = 1, #words, FIELDS do
  local id, data = words[at], words[at + 2]
  local found = redis.call('TYPE', item_prefix .. id).ok
  local outcome = 'imported'
  if seen[id] then
    outcome = seen[id] == data and 'already-there' or 'conflict'
  elseif found ~= 'none' and found ~= 'string' then
    outcome = 'wrong-type'
  elseif found == 'string' then
    if redis.call('GET', item_prefix .. id) == data then
      outcome = 'already-there'
    else
      outcome = on_conflict == 'skip' and 'skipped' or on_conflict == 'replace' and 'replaced' or 'conflict'
    end
  end
  if outcome == 'replaced' or (outcome == 'imported' and words[at + 1] == '1') then
    if removals_left == 0 then
      break
    end
    removals_left = removals_left - 1
    listed[#listed + 1] = id
  end
  if outcome == 'imported' or outcome == 'replaced' then
    restored[#restored + 1] = at
    restored_ids[#restored_ids + 1] = id
    seen[id] = data
  end
  ids[#ids + 1] = id
  outcomes[#ids] = outcome
end
local codes = {}
for i, outcome in ipairs(outcomes) do
  codes[i] = CODES[outcome]
end
if dry_run then
  return { table.concat(codes) }
end
-- The first write has to be one that a server without memory refuses: it lets a script go on that has
-- begun with a DEL. This one changes nothing.
redis.call('SET', lease_prefix .. mark, '', 'XX')
for _, id in ipairs(listed) do
  redis.call('LREM', main, 0, id)
  redis.call('LREM', processing, 0, id)
end
-- Of a new one, too, something may be left: a lease, or the due time of an ID that was completed.
forget(restored_ids)
local for_main, for_processing = {}, {}
local now_ms = clock_ms()
for _, at in ipairs(restored) do
  local id, _, data, place, holder, ttl, due, buried_at, count = unpack(words, at, at + FIELDS - 1)
  redis.call('SET', item_prefix .. id, data)
  if due ~= '' and tonumber(ttl) >= 0 and guard_kind(holder) == 'delayed' then
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
  if place == 'main' then
    for_main[#for_main + 1] = id
  elseif place == 'processing' then
    for_processing[#for_processing + 1] = id
  end
end
for_all(at_front and 'RPUSH' or 'LPUSH', main, for_main)
for_all('LPUSH', processing, for_processing)
return { table.concat(codes) }
