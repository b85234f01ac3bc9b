-- Give live leases a new expiry.
-- include: facts
-- writes: leases SET GET
-- commands: touch, work
-- budget: 375 items  two leases are set for each
-- arg lease_ms  the new lease time, ms
-- arg has_owners:flag  each ID is followed by the holder that must have its lease
-- rest words  IDs
-- Returns the outcomes of `outcome_reply`: touched, not-leased, missing, not-owner, wrong-type.
local ids, owners = words, {}
if has_owners then
  ids, owners = split_pairs(words)
end
local facts, statuses, sessions = read_facts(ids), {}, {}
for i, id in ipairs(ids) do
  local session = session_of(facts[id])
  statuses[i] = facts[id].data == 'none' and 'missing' or has_wrong_type(facts[id]) and 'wrong-type'
    or has_owners and session ~= owners[id] and 'not-owner'
    or (not session or session == '') and 'not-leased' or 'touched'
  sessions[id] = statuses[i] == 'touched' and session or nil
end
for id, session in pairs(dry_run and {} or sessions) do
  set_lease(id, session, lease_ms)
end
return outcome_reply(ids, statuses, facts)
