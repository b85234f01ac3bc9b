-- Return items to the main list and end their leases.
--
-- arg 1..4  how the caller knows where the IDs are: see `lib/locate.lua`
-- arg 5..7  the conditions that the items must still meet: see `lib/expected.lua`
-- arg 8..10  which of them may be taken: see `lib/taking.lua`
-- arg 11    '1' to make the items the next to be leased, '0' for the end of the queue
-- arg 12    '1' to count a return of each, because an attempt of it failed, else '0'
-- arg 13..  IDs, each once, in the order in which they are to be leased
-- Returns the outcomes of `outcome_reply`: released, already-waiting, not-owner, missing, changed,
-- in-transit, wrong-type, elsewhere.
local front, counts_attempt, ids = arg(11) == '1', arg(12) == '1', ids_from(13)
local facts, refusal = facts_to_take(ids, counts_attempt)
if refusal then
  return refusal
end
local statuses, released, now_ms = {}, {}, clock_ms()
for _, id in ipairs(ids) do
  local found = facts[id]
  local is_waiting = found.main and found.main > 0 and not front
  statuses[id] = untaken_status(id, found, now_ms, is_waiting and 'already-waiting')
  if not statuses[id] then
    statuses[id] = 'released'
    released[#released + 1] = id
  end
end
if not dry_run then
  settle_ids(released, 'released')
  if counts_attempt then
    count_returns(released, returns_of(released))
  end
  remove_entries(released)
  unschedule(released, facts)
  push(released, front)
end
return outcome_reply(ids, statuses, facts)
