-- Give live leases a new expiry.
--
-- arg 1   the new lease time, ms
-- arg 2.. IDs
-- Returns the outcomes of `outcome_reply`: touched, not-leased, missing.
local lease_ms, ids = arg(1), args_from(2)
local facts = read_facts(ids)
local wrong = wrong_data(ids, facts)
if wrong then
  return wrong
end
local statuses, sessions = {}, {}
for _, id in ipairs(ids) do
  local session = session_of(facts[id])
  if facts[id].data == 'none' then
    statuses[id] = 'missing'
  elseif not session or session == '' then
    statuses[id] = 'not-leased'
  else
    statuses[id] = 'touched'
    sessions[id] = session
  end
end
for id, session in pairs(dry_run and {} or sessions) do
  set_lease(id, session, lease_ms)
end
return outcome_reply(ids, statuses, facts)
