-- Lease one item wherever it waits: anywhere in main, delayed or buried.
-- include: locate, schedule
-- writes: item GET; delayed ZREM; buried ZREM; main LREM LSET RPOP; processing LREM LSET RPOP LPUSH; leases SET; server TIME
-- commands: lease --id
-- arg holder  holder of the lease, bytes
-- arg lease_ms  ms
-- arg wants_data:flag  return the data, not an empty string in its place
-- arg id
-- Returns { leased, state, position, holder, time left, data, returns }, or nothing if it was not found so. `leased` is
-- 1 if it was leased, or would be, else 0. A state of 'leased', 'held' or 'unlisted' comes with the holder of the lease
-- ('' if it cannot be read) and its time left, ms, -1 for no expiry, else -2. The position counts from the right end of
-- main, -1 if it is not there. `returns` is how often it was returned, '' for never.
local facts = read_facts({ id })
locate({ id }, facts)
local item = facts[id]
item.id = id
if not item.main then
  return {}
end
local session, state = session_of(item), item.data == 'none' and 'gone' or state_of(item, clock_ms())
local is_there = state ~= 'gone' and state ~= 'wrong-type'
if is_there and session and (item.processing > 0 or item.main == 0) then
  -- Even if it is also delayed or duplicated.
  state = leased_or_held(item, item.processing > 0 and 'leased' or 'unlisted')
  return { 0, state, -1, session, effective_left_ms(item), '', '' }
elseif not is_there or state == 'abandoned' or state == 'orphaned' or is_copy(item) then
  return { 0, state, -1, '', -2, '', '' }
end
local position = item.main > 0 and redis.call('LLEN', main) - 1 - last_entries(main)[id] or -1
local count = counts_of({ id })[1] or ''
if not dry_run then
  -- First, because a server that is out of memory refuses it. The data is read after it, as that makes it look young.
  set_lease(id, holder, lease_ms)
  remove_entries({ id })
  delete_entries({ id }, delayed, buried)
  redis.call('LPUSH', processing, id)
end
return { 1, state, position, '', -2, wants_data and redis.call('GET', item_prefix .. id) or '', count }
