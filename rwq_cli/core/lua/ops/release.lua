-- Return items to the main list and end their leases.
--
-- arg 1..4  how the caller knows where the IDs are: see `lib/locate.lua`
-- arg 5..7  the conditions that the items must still meet: see `lib/expected.lua`
-- arg 8     the caller's own holder, whose leases may always be ended
-- arg 9     '1' to end leases of other sessions, too, 'own' to take only what that holder has, else '0'
-- arg 10    '1' to skip abandoned and orphaned items, because this is the first look at them
-- arg 11    '1' to make the items the next to be leased, '0' for the end of the queue
-- arg 12    '1' to count a return of each, because a try of it failed, else '0'
-- arg 13..  IDs, each once, in the order in which they are to be leased
-- Returns the outcomes of `outcome_reply`: released, already-waiting, not-owner, missing, changed,
-- in-transit, elsewhere.
local own_holder, force, own_only, is_first_look = arg(8), arg(9) == '1', arg(9) == 'own', arg(10) == '1'
local front, counts_try, ids = arg(11) == '1', arg(12) == '1', ids_from(13)
if counts_try and not dry_run and denied('count_returns') then
  return denied('count_returns')
end
local facts = read_facts(ids, claim)
local wrong = wrong_data(ids, facts)
if wrong then
  return wrong
end
locate(ids, facts)
local statuses, released, now_ms = {}, {}, clock_ms()
for _, id in ipairs(ids) do
  local found = facts[id]
  local session = session_of(found)
  if not found.main then
    statuses[id] = 'elsewhere'
  elseif found.data == 'none' then
    statuses[id] = 'missing'
  elseif is_changed(id, found, now_ms) then
    statuses[id] = 'changed'
  elseif own_only and session ~= own_holder then
    statuses[id] = 'not-owner'
  elseif found.main > 0 and not front then
    statuses[id] = 'already-waiting'
  elseif session and session ~= own_holder and not force then
    statuses[id] = 'not-owner'
  elseif is_first_look and may_be_in_transit(found, now_ms) then
    statuses[id] = 'in-transit'
  elseif found.main + found.processing == 0 and not may_push_unlisted(found) then
    statuses[id] = 'elsewhere'
  else
    statuses[id] = 'released'
    released[#released + 1] = id
  end
end
if not dry_run then
  settle_ids(released, 'released')
  if counts_try then
    count_returns(released, returns_of(released))
  end
  remove_entries(released, facts)
  unschedule(released, facts)
  push(released, front)
end
return outcome_reply(ids, statuses, facts)
