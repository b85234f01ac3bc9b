-- Put buried items back into the main list, at its end; what was counted of their returns is forgotten.
--
-- arg 1..   IDs, each once, in the order in which they shall be leased
-- Returns { statuses, holder, ... }: a letter for each ID in order, k kicked, u not buried, m missing, o
-- leased by a session, - its guard is gone or of one name alone, so that a cleaner may have returned it
-- already: it has to be looked for in the lists first; then for each o who holds the lease.
-- Uses: parking
local refusal = denied(
  { 'DEL', lease_prefix .. 'x' },
  { 'DEL', old_lease_prefix .. 'x' },
  { 'ZREM', delayed, 'x' },
  { 'ZREM', buried, 'x' },
  { 'HDEL', returns, 'x' },
  { 'LPUSH', main, 'x' }
)
if refusal then
  return refusal
end
local ids = args_from(1)
local exists, odd = with_data_of_right_type(ids)
if odd then
  return odd
end
local sessions, parked, buried_ms = sessions_and_parked(ids)
local statuses, holders, kicked = {}, {}, {}
for i, id in ipairs(ids) do
  if not exists[id] then
    statuses[i] = 'm'
  elseif not buried_ms[id] then
    statuses[i] = 'u'
  elseif sessions[id] then
    statuses[i] = 'o'
    holders[#holders + 1] = sessions[id]
  elseif parked[id] then
    statuses[i] = 'k'
    kicked[#kicked + 1] = id
  else
    statuses[i] = '-'
  end
end
drop_leases(kicked)
unschedule(kicked)
if present[returns] then
  for_all('HDEL', returns, kicked)
end
for_all('LPUSH', main, kicked)
return { table.concat(statuses), unpack(holders) }
