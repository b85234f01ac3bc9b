-- Put items away that wait, in a stretch of main, without a pass over the list for each of them.
--
-- arg 1     how many entries at the right end of main to pass over
-- arg 2     how many entries to look at behind those
-- arg 3     a value that is no ID, to mark entries with while this runs
-- arg 4     our own holder, whose leases need no force
-- arg 5     '1' to end a lease that another session holds, else '0'
-- arg 6     for how long to delay them, ms; 'bury' or 'rebury' to bury them
-- arg 7     why they are buried; any bytes
-- arg 8..   IDs, each once, which the caller saw in main once and in no other list
-- Returns { statuses, holder, ... }: a letter for each ID in order, b buried, l delayed, m missing (its
-- entry is dropped), o leased by another, - not in that stretch; then for each o who holds the lease.
-- Uses: guards, places, parking
local refusal = denied(
  { 'LSET', main, 0, 'x' },
  { 'LREM', main, 0, 'x' },
  { 'RPOP', main }
) or denied_to_park()
if refusal then
  return refusal
end
local passed, count, mark, own_holder = tonumber(arg(1)), tonumber(arg(2)), arg(3), arg(4)
local force, delay_ms, reason, ids = arg(5) == '1', tonumber(arg(6)), arg(7), args_from(8)
local exists, odd = with_data_of_right_type(ids)
if odd then
  return odd
end
local sessions = sessions_and_parked(ids)
local place = sole_places(exists, passed, count)
local statuses, holders, chosen, places = {}, {}, {}, {}
for i, id in ipairs(ids) do
  local holder = exists[id] and sessions[id]
  if not place[id] then
    statuses[i] = '-'
  elseif holder and holder ~= own_holder and not force then
    statuses[i] = 'o'
    holders[#holders + 1] = holder
  else
    statuses[i] = not exists[id] and 'm' or delay_ms and 'l' or 'b'
    places[#places + 1] = place[id]
    if exists[id] then
      chosen[#chosen + 1] = id
    end
    -- Each entry once, whatever the caller sent: what is popped is counted.
    place[id] = nil
  end
end
local now_ms = clock_ms()
drop_places(main, places, mark)
if delay_ms then
  delay_all(chosen, delay_ms, now_ms)
else
  bury_all(chosen, reason, now_ms)
end
return { table.concat(statuses), unpack(holders) }
