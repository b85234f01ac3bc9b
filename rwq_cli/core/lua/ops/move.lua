-- Move items to the end of another queue.
-- include: expected, schedule, marks, target
-- writes: leases MGET DEL; delayed ZREM; buried ZREM; returns HDEL; cleaning LREM; item GET GETRANGE; renamed RENAMENX;
--   to_main LPUSH; to_delayed ZREM; to_buried ZREM; to_returns HSET HDEL; to_leases SET DEL
-- commands: mv, mv --to-url, undo
-- budget: 375 items  two leases are set and a key is renamed for each
-- arg keeps_leased:flag  leave items with a lease or guard alone
-- arg lines  the line number of each ID, joined by ';', if there is a bitmap of restored lines
-- rest words  the IDs, each once, in the order in which they are to wait
-- Returns the outcomes of `outcome_reply`: moved, missing, changed, not-owner, moving, in-transit, conflict if the
-- other queue has this ID, wrong-type, elsewhere, imported-before if its line is marked.
local refusal = check_type(to_main, 'list') or check_type(to_processing, 'list') or check_type(to_delayed, 'zset')
  or check_type(to_buried, 'zset') or check_type(to_returns, 'hash')
if refusal then
  return refusal
end

local ids, numbers, line_of = ids_in(words), {}, {}
for line in string.gmatch(lines, '%d+') do
  numbers[#numbers + 1] = line
  line_of[ids[#numbers]] = line
end
local marked = read_marks(numbers)

-- The other queue rarely has any of them, or a leftover lease.
local keys_there = joined(prefixed(to_item, ids), prefixed(to_lease, ids), prefixed(to_old_lease, ids))
local some_exist = for_all('EXISTS', nil, keys_there) > 0
local function is_occupied(id)
  local new, old = redis.call('TYPE', to_lease .. id).ok, redis.call('TYPE', to_old_lease .. id).ok
  return redis.call('EXISTS', to_item .. id) == 1 or (new ~= 'none' and new ~= 'string')
    or (old ~= 'none' and old ~= 'string')
end

return act(ids, function(id, item, now_ms)
  return marked[line_of[id]] and 'imported-before' or refusal_of(id, item, now_ms)
    or keeps_leased and effective_lease(item) and 'not-owner' or item.buried_ms and is_copy(item) and 'moving'
    or is_in_doubt(id, item, now_ms) and 'in-transit' or unsaved_status(id)
    or some_exist and is_occupied(id) and 'conflict' or 'moved'
end, function(groups, facts)
  local moved, moved_lines, gone = groups.moved, {}, joined(groups.missing, groups.moved)
  local counts = counts_of(moved)
  settle(prefixed(to_lease, moved), prefixed(to_old_lease, moved), 'moved', to_main, to_processing)
  delete_leases(gone, facts)
  forget_entries(gone)
  -- The other queue may have leftovers of an earlier item with this ID.
  delete_entries(moved, to_delayed, to_buried)
  for_all('HDEL', to_returns, present[to_returns] and moved or {})
  for i, id in ipairs(moved) do
    moved_lines[i] = line_of[id]
    redis.call('RENAMENX', item_prefix .. id, to_item .. id)
    if counts[i] then
      redis.call('HSET', to_returns, id, counts[i])
    end
  end
  mark_lines(moved_lines)
  for_all('LPUSH', to_main, moved)
  remove_entries(gone)
end)
