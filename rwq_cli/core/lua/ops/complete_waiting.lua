-- Complete items that wait, in a stretch of main, without a pass over the list for each of them.
--
-- arg 1     how many entries at the right end of main to pass over
-- arg 2     how many entries to look at behind those
-- arg 3     a value that is no ID, to mark entries with while this runs
-- arg 4     only where this holder has the lease; '' for any
-- arg 5     how long to keep an outcome of each, ms; '' to keep none
-- arg 6     what the outcome says: 'completed' | 'rejected'
-- arg 7     '1' where there is a result to keep with it, else '0'
-- arg 8     that result, bytes
-- arg 9..   IDs, each once, which the caller saw in main once and in no other list
-- Returns { statuses, holder, ... }: a letter for each ID in order, c completed, m missing, o not the
-- owner, - not in that stretch; then for each o who holds the lease, or ''.
-- Uses: places, results
local refusal = denied(
  { 'LSET', main, 0, 'x' },
  { 'LREM', main, 0, 'x' },
  { 'RPOP', main },
  { 'LREM', cleaning, 0, 'x' },
  { 'DEL', item_prefix .. 'x' },
  { 'DEL', lease_prefix .. 'x' },
  { 'DEL', old_lease_prefix .. 'x' },
  { 'ZREM', delayed, 'x' },
  { 'ZREM', buried, 'x' },
  { 'HDEL', returns, 'x' }
)
if refusal then
  return refusal
end
local passed, count, mark, owner, ids = tonumber(arg(1)), tonumber(arg(2)), arg(3), arg(4), args_from(9)
local exists, odd = with_data_of_right_type(ids)
if odd then
  return odd
end
local results, unfit = prepare_results(ids, exists, arg(5), arg(6), arg(7) == '1' and arg(8) or nil)
if unfit then
  return unfit
end
local place = sole_places(exists, passed, count)
local statuses, holders, finished, places = {}, {}, {}, {}
for i, id in ipairs(ids) do
  local holder = owner ~= '' and exists[id] and (lease_holder(id) or '')
  if not place[id] then
    statuses[i] = '-'
  elseif holder and holder ~= owner then
    statuses[i] = 'o'
    holders[#holders + 1] = holder
  else
    statuses[i] = exists[id] and 'c' or 'm'
    finished[#finished + 1] = id
    places[#places + 1] = place[id]
    -- Each entry once, whatever the caller sent: what is popped is counted.
    place[id] = nil
  end
end
-- First of the writes: a server without memory lets a script go on that has begun with what needs none.
for_all('DEL', nil, item_keys(finished))
forget(finished)
drop_places(main, places, mark)
settle_results(finished, results)
return { table.concat(statuses), unpack(holders) }
