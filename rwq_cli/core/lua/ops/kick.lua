-- Put buried items back into the main list, at its end; what was counted of their returns is forgotten.
--
-- arg 1     '1' to look for each by name in both lists, which costs their length, '0' to take what is behind
--           a guard of both names to be in no list
-- arg 2..   IDs, each once, in the order in which they shall be leased
-- Returns { statuses, holder, ... }: a letter for each ID in order, k kicked, u not buried, m missing, o
-- leased by a session, - its guard is gone or of one name alone, so that a cleaner may have returned it
-- already, or it waits in spite of its guard: it has to be looked for in the lists first; then for each o
-- who holds the lease.
-- Uses: parking
local refusal = denied(
  { 'DEL', lease_prefix .. 'x' },
  { 'DEL', old_lease_prefix .. 'x' },
  { 'ZREM', delayed, 'x' },
  { 'ZREM', buried, 'x' },
  { 'HDEL', returns, 'x' },
  { 'LREM', processing, 0, 'x' },
  { 'LPUSH', main, 'x' }
)
if refusal then
  return refusal
end
local looks, ids = arg(1) == '1', args_from(2)
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
  elseif parked[id] and not (looks and redis.call('LPOS', main, id)) then
    statuses[i] = 'k'
    kicked[#kicked + 1] = id
  else
    statuses[i] = '-'
  end
end
for _, id in ipairs(looks and kicked or {}) do
  redis.call('LREM', processing, 0, id)
end
drop_leases(kicked)
unschedule(kicked)
if present[returns] then
  for_all('HDEL', returns, kicked)
end
for_all('LPUSH', main, kicked)
return { table.concat(statuses), unpack(holders) }
