-- Move items to the end of another queue.
--
-- include: locate, expected, schedule, marks
-- writes: processing LREM LSET RPOP; main LREM LSET RPOP; leases MGET DEL; delayed ZREM; buried ZREM; returns HDEL;
--   cleaning LREM; item GET GETRANGE; renamed RENAMENX; to_main LPUSH; to_delayed ZREM; to_buried ZREM;
--   to_returns HSET HDEL; to_leases SET
-- arg to_main  the other queue: its main list, processing list, delayed, buried and returns, and its prefixes of
--   data, new lease and old lease keys
-- arg to_processing
-- arg to_delayed
-- arg to_buried
-- arg to_returns
-- arg to_item
-- arg to_lease
-- arg to_old_lease
-- arg keeps_leased:flag  leave items with a lease or guard alone
-- arg is_first_look:flag  skip abandoned and orphaned items
-- arg lines  the line number of each ID, joined by ';', if there is a bitmap of restored lines
-- rest words  the IDs, each once, in the order in which they are to wait
-- Returns the outcomes of `outcome_reply`: moved, missing, changed, not-owner, in-transit, conflict if the other
-- queue has this ID, wrong-type, elsewhere, imported-before if its line is marked.
local to_present = {}
for key, expected in pairs({
  [to_main] = 'list', [to_processing] = 'list', [to_delayed] = 'zset', [to_buried] = 'zset',
  [to_returns] = 'hash',
}) do
  local found = redis.call('TYPE', key).ok
  if found ~= 'none' and found ~= expected then
    return wrong_type(key, found, 'a ' .. expected)
  end
  to_present[key] = found ~= 'none'
end

local ids, numbers, line_of = ids_in(words), {}, {}
for line in string.gmatch(lines, '%d+') do
  numbers[#numbers + 1] = line
  line_of[ids[#numbers]] = line
end
local marked = read_marks(numbers)
local facts, now_ms = read_facts(ids), clock_ms()
locate(ids, facts)

-- The keys of some IDs in the other queue.
local function keys_there(prefixes, some)
  local keys = {}
  for _, prefix in ipairs(prefixes) do
    for _, id in ipairs(some) do
      keys[#keys + 1] = prefix .. id
    end
  end
  return keys
end
-- The other queue rarely has any of them, or a leftover lease.
local some_exist = for_all('EXISTS', nil, keys_there({ to_item, to_lease, to_old_lease }, ids)) > 0
local function is_taken(id)
  for _, key in ipairs(keys_there({ to_lease, to_old_lease }, { id })) do
    local found = redis.call('TYPE', key).ok
    if found ~= 'none' and found ~= 'string' then
      return true
    end
  end
  return redis.call('EXISTS', to_item .. id) == 1
end

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
  end
  return unsaved_status(id) or some_exist and is_taken(id) and 'conflict' or 'moved'
end

local statuses, moved, moved_lines, delisted = {}, {}, {}, {}
for _, id in ipairs(ids) do
  statuses[id] = status_of(id, facts[id])
  if statuses[id] == 'moved' then
    moved[#moved + 1] = id
    moved_lines[#moved] = line_of[id]
  end
  delisted[#delisted + 1] = (statuses[id] == 'moved' or statuses[id] == 'missing') and id or nil
end
if dry_run then
  return outcome_reply(ids, statuses, facts)
end
local counts = present[returns] and #moved > 0 and read_all('HMGET', returns, moved) or {}
if #moved > 0 then
  -- The first write is one that a server that is out of memory refuses.
  local length = redis.call('LLEN', to_main) + redis.call('LLEN', to_processing)
  settle(keys_there({ to_lease, to_old_lease }, moved), 'moved', length)
end
mark_lines(moved_lines)
delete_leases(delisted)
forget_entries(delisted)
-- The other queue may have leftovers of an earlier item with this ID.
for key, command in pairs({ [to_delayed] = 'ZREM', [to_buried] = 'ZREM', [to_returns] = 'HDEL' }) do
  for_all(command, key, to_present[key] and moved or {})
end
for i, id in ipairs(moved) do
  redis.call('RENAMENX', item_prefix .. id, to_item .. id)
  if counts[i] then
    redis.call('HSET', to_returns, id, counts[i])
  end
end
for_all('LPUSH', to_main, moved)
remove_entries(delisted)
return outcome_reply(ids, statuses, facts)
