-- Remove items from the queue with all their traces, or move them to another queue.
--
-- arg 1..4   how the caller knows where the IDs are: see `lib/locate.lua`
-- arg 5..7   the conditions that the items must still meet: see `lib/expected.lua`; arg 7 is '1'
-- arg 8..15  the queue to move them to: its main list, processing list, delayed, buried, returns, and
--            its prefixes of data, new lease and old lease keys; all '' to remove them
-- arg 16     '1' to leave leased items alone, else '0'
-- arg 17     '1' to skip abandoned and orphaned items, because this is the first look at them
-- arg 18     the bitmap of restored lines, for an undo of a move: see `lib/marks.lua`
-- arg 19     the line number of each ID, joined by ';', if there is a bitmap
-- arg 20..   ID, fingerprint of the data that the caller has saved ('' if it saw none), ID, ...; each ID
--            once, in the order in which they are to wait
-- Returns the outcomes of `outcome_reply`: removed, moved, missing, changed if it does not meet the conditions
-- or its data differs from the saved data, not-owner for a leased item, in-transit, conflict if the other queue
-- has this ID, wrong-type, elsewhere, imported-before if its line is marked. Entries, leases and counts of IDs
-- without data are removed. A dry run treats data without a fingerprint as saved.
local to_main, to_processing, to_delayed, to_buried = arg(8), arg(9), arg(10), arg(11)
local to_returns, to_item, to_lease, to_old_lease = arg(12), arg(13), arg(14), arg(15)
local keeps_leased, is_first_look = arg(16) == '1', arg(17) == '1'
local moves = to_main ~= ''
local to_types = moves and {
  [to_main] = 'list', [to_processing] = 'list', [to_delayed] = 'zset', [to_buried] = 'zset',
  [to_returns] = 'hash',
} or {}
local to_present = {}
for key, expected in pairs(to_types) do
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= expected then
    return wrong_type(key, found, 'a ' .. expected)
  end
  to_present[key] = found ~= 'none'
end
local refusal = moves and not dry_run and denied('move')
if refusal then
  return refusal
end

local ids, lines, line_of = ids_from(20), {}, {}
for line in string.gmatch(arg(19), '%d+') do
  lines[#lines + 1] = line
  line_of[ids[#lines]] = line
end
local marked = read_marks(lines)
for i = 1, #ids do
  -- The caller saw no data.
  if expected_data[ids[i]] == '' then
    expected_data[ids[i]] = nil
  end
end
local facts, now_ms = read_facts(ids), clock_ms()
-- The other queue rarely has any of them.
local may_conflict = moves and for_all('EXISTS', nil, prefixed(to_item, ids)) > 0
-- Whether that queue has a lease key of the wrong type.
local function has_wrong_lease(id)
  for _, key in ipairs({ to_lease .. id, to_old_lease .. id }) do
    local found = redis.call('TYPE', key).ok
    if found ~= 'none' and found ~= 'string' then
      return true
    end
  end
  return false
end
local to_leases = moves and prefixed(to_lease, ids) or {}
for i, key in ipairs(moves and prefixed(to_old_lease, ids) or {}) do
  to_leases[#ids + i] = key
end
local may_be_wrong = for_all('EXISTS', nil, to_leases) > 0
locate(ids, facts)

local function status_of(id, found)
  if marked[line_of[id]] then
    return 'imported-before'
  end
  local refusal = refusal_of(id, found, now_ms)
  if refusal then
    return refusal
  elseif keeps_leased and effective_lease(found) then
    return 'not-owner'
  elseif is_first_look and needs_second_look(found, now_ms) then
    return 'in-transit'
  elseif not expected_data[id] and not dry_run then
    -- It was added since the caller looked.
    return where == 'name' and 'changed' or 'elsewhere'
  elseif may_conflict and redis.call('EXISTS', to_item .. id) == 1 then
    return 'conflict'
  elseif may_be_wrong and has_wrong_lease(id) then
    return 'conflict'
  end
  return moves and 'moved' or 'removed'
end

local statuses, taken, leased, delisted = {}, {}, {}, {}
for i = 1, #ids do
  local id = ids[i]
  local found = facts[id]
  local status = status_of(id, found)
  statuses[id] = status
  if status == 'moved' or status == 'removed' then
    taken[#taken + 1] = id
  end
  if status == 'moved' or status == 'removed' or status == 'missing' then
    delisted[#delisted + 1] = id
    if found.new or found.old then
      leased[#leased + 1] = id
    end
  end
end
if dry_run then
  return outcome_reply(ids, statuses, facts)
end
local counts = moves and present[returns] and #taken > 0 and read_all('HMGET', returns, taken) or {}
if moves and #taken > 0 then
  -- The first write of a move is one that a server that is out of memory refuses.
  local leases = prefixed(to_lease, taken)
  for i, key in ipairs(prefixed(to_old_lease, taken)) do
    leases[#taken + i] = key
  end
  settle(leases, 'moved', redis.call('LLEN', to_main) + redis.call('LLEN', to_processing))
elseif not moves then
  -- First, and also for IDs without data: DEL needs no memory, and a full server does not stop a script that has
  -- already written.
  for_all('DEL', nil, prefixed(item_prefix, delisted))
end
local moved_lines = {}
for i, id in ipairs(taken) do
  moved_lines[i] = line_of[id]
end
mark_lines(moved_lines)
if #delisted > 0 then
  delete_leases(leased)
  forget_entries(delisted)
end
if moves then
  -- The other queue may have leftovers of an earlier item with this ID.
  for key, command in pairs({ [to_delayed] = 'ZREM', [to_buried] = 'ZREM', [to_returns] = 'HDEL' }) do
    for_all(command, key, to_present[key] and taken or {})
  end
  for i, id in ipairs(taken) do
    redis.call('RENAMENX', item_prefix .. id, to_item .. id)
    if counts[i] then
      redis.call('HSET', to_returns, id, counts[i])
    end
  end
  for_all('LPUSH', to_main, taken)
end
remove_entries(delisted)
return outcome_reply(ids, statuses, facts)
