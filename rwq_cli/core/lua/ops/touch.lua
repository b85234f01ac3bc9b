-- Give live leases a new expiry.
--
-- arg 1     new time left, ms
-- arg 2..   IDs
-- Returns { statuses }: a letter for each ID in order, t touched, n not leased, m missing.
-- A guard of a delayed or buried item is no lease that anybody works under: not leased.
local refusal = denied(
  { 'SET', lease_prefix .. 'x', 'x' },
  { 'SET', old_lease_prefix .. 'x', 'x' }
)
if refusal then
  return refusal
end
local lease_ms, ids = arg(1), args_from(2)
local exists, odd = with_data_of_right_type(ids)
if odd then
  return odd
end
local holders, statuses = lease_holders(ids), {}
for i, id in ipairs(ids) do
  local holder = holders[id]
  if not exists[id] then
    statuses[i] = 'm'
  elseif not holder or holder == '' or is_guard(holder) then
    statuses[i] = 'n'
  else
    set_lease(id, holder, lease_ms)
    statuses[i] = 't'
  end
end
return { table.concat(statuses) }
