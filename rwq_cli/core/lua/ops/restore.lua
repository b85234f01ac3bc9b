-- Restore items as they were: with their data, place, lease, times and returns.
-- include: digest, locate, schedule, marks
-- writes: leases MGET SET DEL; delayed ZADD ZREM; buried ZADD ZREM; returns HSET HDEL; cleaning LREM; item MSET SET GET;
--   main LLEN LPUSH RPUSH LREM LSET RPOP; processing LLEN LPUSH LREM LSET RPOP; server TIME
-- commands: undo, import
-- budget: 250 items  three keys are set for each while the server resizes its key table
-- arg on_conflict  what to do with an ID that exists with other data: 'fail' | 'skip' | 'replace'
-- arg front:flag  put each item of main before all waiting items, not after them
-- rest args  for each item: the number of its line in the file; ID; data; place ('main', 'processing' or 'none');
--   holder; ms left of its lease (-1 no expiry, -2 none); due time and time of burial, unix ms, or ''; its returns,
--   or ''; which data 'replace' may replace: '' any, in a dry run; '-' none; 'other' none, and the item must exist;
--   else the token of the data, after '=' if only they are replaced. Each ID once. IDs with a token and no '=' are
--   those that `lib/locate.lua` looks for
-- Returns the outcomes of `outcome_reply`: imported, imported-before if its line is marked, already-there with this
-- data, skipped, replaced, conflict for other data, changed for data that may not be replaced or an item that a session
-- has leased since, missing if the item must exist, wrong-type, elsewhere.
local FIELDS = 10
local OTHER_DATA = { fail = 'conflict', skip = 'skipped', replace = 'replaced' }

local now_ms, lines, ids, replaceable = clock_ms(), {}, {}, {}
for at = 1, #args, FIELDS do
  lines[#lines + 1], ids[#ids + 1] = args[at], args[at + 1]
  replaceable[#replaceable + 1] = string.find(args[at + 9], '^%d+:') and args[at + 1] or nil
end
local leases, _, has_wrong_lease = lease_values(ids)
local facts = read_facts(replaceable)
if #replaceable > 0 then
  locate(replaceable, facts)
end
-- Usually, none of the items exists.
local marked, some_exist = read_marks(lines), for_all('EXISTS', nil, prefixed(item_prefix, ids)) > 0

local function status_of(line, id, data, may_replace)
  if marked[line] then
    return 'imported-before'
  end
  local kind = some_exist and redis.call('TYPE', item_prefix .. id).ok or 'none'
  if has_wrong_lease[id] or kind ~= 'none' and kind ~= 'string' then
    return 'wrong-type'
  elseif kind == 'none' then
    return (may_replace == '' or may_replace == '-') and 'imported' or 'missing'
  end
  -- Data of another length are never loaded to be compared.
  local key = item_prefix .. id
  if redis.call('STRLEN', key) == #data and redis.call('GET', key) == data then
    return 'already-there'
  end
  local token = string.match(may_replace, '%d+:%x+$')
  if may_replace ~= '' and not (token and not has_other_data(id, token)) then
    return 'changed'
  end
  local current = facts[id]
  if not current then
    return OTHER_DATA[on_conflict]
  end
  current.id = id
  -- It would be taken from its worker.
  return session_of(current) and 'changed' or not current.main and 'elsewhere' or OTHER_DATA[on_conflict]
end

local statuses, done, restored, restored_ids, replaced, keys_and_data = {}, {}, {}, {}, {}, {}
local in_place = {}
for i, id in ipairs(ids) do
  local at = (i - 1) * FIELDS + 1
  local status = status_of(args[at], id, args[at + 2], args[at + 9])
  statuses[i] = status
  local is_written = status == 'imported' or status == 'replaced'
  if is_written and string.sub(args[at + 9], 1, 1) == '=' then
    in_place[#in_place + 1] = at
  elseif is_written then
    keys_and_data[#keys_and_data + 1], keys_and_data[#keys_and_data + 2] = item_prefix .. id, args[at + 2]
    restored[#restored + 1], restored_ids[#restored_ids + 1] = at, id
    replaced[#replaced + 1] = status == 'replaced' and id or nil
  end
  done[#done + 1] = (is_written or status == 'already-there') and args[at] or nil
end
if dry_run then
  return outcome_reply(ids, statuses)
end
-- The first write is one that a server that is out of memory refuses. Once a script has written, the server does not
-- refuse its other writes.
mark_lines(done)
for_all('MSET', nil, keys_and_data)
for _, at in ipairs(in_place) do
  -- An expiry that somebody has given the item stays, as in an edit.
  redis.call('SET', item_prefix .. args[at + 1], args[at + 2], 'KEEPTTL')
end
remove_entries(replaced)
-- Even an ID without data may have leftovers: a lease, or the due time of a completed item.
forget_entries(restored_ids)
local to_lists = { main = {}, processing = {}, none = {} }
for _, at in ipairs(restored) do
  table.insert(to_lists[args[at + 3]], args[at + 1])
end
-- At the front, the items come last first.
local for_main = front and reversed(to_lists.main) or to_lists.main
if next(leases) then
  delete_guards(restored_ids, true)
end
settle(prefixed(lease_prefix, for_main), prefixed(old_lease_prefix, for_main), 'restored')
push(for_main, front)
for_all('LPUSH', processing, to_lists.processing)
local waiting_ms = tonumber(settling_ms(main, processing))
for _, at in ipairs(restored) do
  local id, place, holder, left_ms, due, buried_at, count = args[at + 1], unpack(args, at + 3, at + 8)
  left_ms = tonumber(left_ms)
  if left_ms == -1 then
    set_lease(id, holder)
  elseif left_ms >= 0 then
    -- The time left that was saved may be too short by this server's clock. A lease of an item of main replaces the
    -- settling lease.
    local needed_ms = place == 'main' and waiting_ms or 0
    if due ~= '' and guard_kind(holder) == 'delayed' then
      needed_ms = tonumber((select(2, delayed_guard(tonumber(due), now_ms))))
    end
    set_lease(id, holder, whole_ms(math.max(left_ms, needed_ms)))
  end
  for_all('ZADD', delayed, due ~= '' and { due, id } or {})
  for_all('ZADD', buried, buried_at ~= '' and { buried_at, id } or {})
  for_all('HSET', returns, count ~= '' and { id, count } or {})
end
return outcome_reply(ids, statuses)
