-- Restore items as they were: with their data, place, lease, times and returns.
--
-- arg 1     the bitmap of restored lines: see `lib/marks.lua`
-- arg 2     what to do with an ID that exists with other data: 'fail' | 'skip' | 'replace'
-- arg 3     '1' to put each item of main before all waiting items, '0' after them
-- arg 4     how many IDs may be removed from the lists first, each of which costs a scan: replaced items, and
--           entries without data, which would list the item twice
-- arg 5..   for each item: the number of its line in the file; ID; '1' if an entry without data may be in
--           a list, else '0'; data; place ('main', 'processing' or 'none'); holder; ms left of its lease
--           (-1 no expiry, -2 none); due time and time of burial, unix ms, or ''; its returns, or '';
--           which data 'replace' may replace: '' any, '-' none, else the SHA-1 of the data, and the
--           item must exist. Each ID once
-- Returns the outcomes of `outcome_reply`: imported, imported-before if its line is marked, already-there with
-- this data, skipped, replaced, conflict for other data, changed for data that may not be replaced, missing if
-- the item must exist, wrong-type. Fewer outcomes than items mean that
-- arg 4 was used up, and the rest needs another call.
local on_conflict, front, removals_left = arg(2), arg(3) == '1', tonumber(arg(4))
local args, now_ms = args_from(5), clock_ms()
local FIELDS = 11
local OTHER_DATA = { fail = 'conflict', skip = 'skipped', replace = 'replaced' }

local lines, keys, all_ids = {}, {}, {}
for at = 1, #args, FIELDS do
  lines[#lines + 1], keys[#keys + 1], all_ids[#all_ids + 1] = args[at], item_prefix .. args[at + 1], args[at + 1]
end
local has_wrong_lease = wrong_leases(all_ids, (lease_values(all_ids)))
-- Usually, none of the items exists.
local marked, some_exist = read_marks(lines), for_all('EXISTS', nil, keys) > 0

local function status_of(line, id, data, replaceable)
  if marked[line] then
    return 'imported-before'
  end
  local found = some_exist and redis.call('TYPE', item_prefix .. id).ok or 'none'
  if found == 'none' then
    return (replaceable == '' or replaceable == '-') and 'imported' or 'missing'
  elseif found ~= 'string' then
    return 'wrong-type'
  end
  local now = redis.call('GET', item_prefix .. id)
  if now == data then
    return 'already-there'
  elseif replaceable ~= '' and redis.sha1hex(now) ~= replaceable then
    return 'changed'
  end
  return OTHER_DATA[on_conflict]
end

local ids, statuses, done, restored, restored_ids, listed = {}, {}, {}, {}, {}, {}
for at = 1, #args, FIELDS do
  local line, id, may_be_listed, data = unpack(args, at, at + 3)
  local status = status_of(line, id, data, args[at + 10])
  local is_restored = status == 'imported' or status == 'replaced'
  if (is_restored or status == 'changed') and has_wrong_lease[id] then
    status, is_restored = 'wrong-type', false
  end
  if status == 'replaced' or (is_restored and may_be_listed == '1') then
    if removals_left == 0 then
      break
    end
    removals_left = removals_left - 1
    listed[#listed + 1] = id
  end
  if is_restored then
    restored[#restored + 1] = at
    restored_ids[#restored_ids + 1] = id
  end
  if is_restored or status == 'already-there' then
    done[#done + 1] = line
  end
  ids[#ids + 1] = id
  statuses[id] = status
end
if dry_run then
  return outcome_reply(ids, statuses)
end
-- The first write is one that a server that is out of memory refuses. Once a script has written, the server
-- does not refuse its other writes.
mark_lines(done)
local keys_and_data = {}
for i, at in ipairs(restored) do
  keys_and_data[2 * i - 1], keys_and_data[2 * i] = item_prefix .. args[at + 1], args[at + 3]
end
for_all('MSET', nil, keys_and_data)
for _, id in ipairs(listed) do
  redis.call('LREM', main, 0, id)
  redis.call('LREM', processing, 0, id)
end
-- Even an ID without data may have leftovers: a lease, or the due time of a completed item. The lease keys
-- of items in main, and of items with a lease, are overwritten below.
forget_entries(restored_ids)
local for_main, for_processing, without_lease = {}, {}, {}
for _, at in ipairs(restored) do
  local id, place = args[at + 1], args[at + 4]
  if place ~= 'main' and args[at + 6] == '-2' then
    without_lease[#without_lease + 1] = id
  end
  if place == 'main' then
    -- At the front, the items come last first.
    table.insert(for_main, front and 1 or #for_main + 1, id)
  elseif place == 'processing' then
    for_processing[#for_processing + 1] = id
  end
end
delete_leases(without_lease)
settle_ids(for_main, 'restored')
push(for_main, front)
for_all('LPUSH', processing, for_processing)
local waiting_ms = settling_ms(redis.call('LLEN', main) + redis.call('LLEN', processing))
for _, at in ipairs(restored) do
  local id, place, holder, left_ms, due, buried_at, count = args[at + 1], unpack(args, at + 4, at + 9)
  local needed_ms = 0
  if due ~= '' and guard_kind(holder) == 'delayed' then
    -- The saved time left may be too short by this server's clock.
    local _, guard_ms = delayed_guard(tonumber(due), now_ms)
    needed_ms = tonumber(guard_ms)
  elseif place == 'main' then
    -- It replaces the settling lease.
    needed_ms = waiting_ms
  end
  if tonumber(left_ms) >= 0 then
    left_ms = string.format('%.0f', math.max(tonumber(left_ms), needed_ms))
  end
  if left_ms == '-1' then
    redis.call('SET', lease_prefix .. id, holder)
    redis.call('SET', old_lease_prefix .. id, holder)
  elseif left_ms ~= '-2' then
    set_lease(id, holder, left_ms)
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
end
return outcome_reply(ids, statuses)
