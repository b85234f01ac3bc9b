-- Give live leases a new expiry.
--
-- include: facts
-- writes: leases SET GET
-- arg lease_ms  the new lease time, ms
-- arg has_owners:flag  each ID is followed by the holder that must have its lease
-- rest words  IDs
-- Returns the outcomes of `outcome_reply`: touched, not-leased, missing, not-owner, wrong-type.
local ids, owners = words, {}
if has_owners then
  ids, owners = split_pairs(words)
end
local facts = read_facts(ids)
local statuses, sessions = {}, {}
for _, id in ipairs(ids) do
  local session = session_of(facts[id])
  if facts[id].data == 'none' then
    statuses[id] = 'missing'
  elseif has_wrong_type(facts[id]) then
    statuses[id] = 'wrong-type'
  elseif has_owners and session ~= owners[id] then
    statuses[id] = 'not-owner'
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
