-- Give live leases a new expiry.
--
-- arg 1     new time left, ms
-- arg 2..   IDs
-- Returns, for each ID: ID, 'touched' | 'not-leased' | 'missing', holder or ''.
-- A guard of a delayed or buried item is no lease that anybody works under: 'not-leased'.
check_types()
local lease_ms, ids = arg(1), args_from(2)
local reply = {}
for _, id in ipairs(ids) do
  local status, holder = 'touched', lease_holder(id) or ''
  if not has_data(id) then
    status = 'missing'
  elseif holder == '' or string.sub(holder, 1, 12) == 'rwq-delayed:'
      or string.sub(holder, 1, 11) == 'rwq-buried:' then
    status = 'not-leased'
  else
    set_lease(id, holder, lease_ms)
  end
  reply[#reply + 1] = id
  reply[#reply + 1] = status
  reply[#reply + 1] = holder
end
return reply
