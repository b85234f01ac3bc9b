-- Bury or delay items, wherever they are, and end their leases.
--
-- arg 1..4  how the caller knows where the IDs are: see `lib/locate.lua`
-- arg 5..7  the conditions that the items must still meet: see `lib/expected.lua`
-- arg 8     the caller's own holder, whose leases may always be ended
-- arg 9     '1' to end leases of other sessions, too, 'own' to take only what that holder has, else '0'
-- arg 10    '1' to skip abandoned and orphaned items, because this is the first look at them
-- arg 11    how long to delay them, ms; 'bury' to bury them; 'rebury' to bury them and replace the reason of
--           those that are already buried
-- arg 12    the reason to bury them, bytes
-- arg 13    '1' to count a return of those that are delayed, because a try of theirs failed, else '0'
-- arg 14..  IDs, each once
-- Returns the outcomes of `outcome_reply`: buried, already-buried, delayed, not-owner, missing,
-- changed, in-transit, elsewhere.
local own_holder, force, own_only, is_first_look = arg(8), arg(9) == '1', arg(9) == 'own', arg(10) == '1'
local delay_ms, replaces_reason, reason = tonumber(arg(11)), arg(11) == 'rebury', arg(12)
local counts_try, ids = arg(13) == '1', ids_from(14)
if counts_try and not dry_run and denied('count_returns') then
  return denied('count_returns')
end
local facts = read_facts(ids, claim)
local wrong = wrong_data(ids, facts)
if wrong then
  return wrong
end
locate(ids, facts)

local statuses, moved, already_buried, now_ms = {}, {}, {}, clock_ms()
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
  elseif session and session ~= own_holder and not force then
    statuses[id] = 'not-owner'
  elseif is_first_look and may_be_in_transit(found, now_ms) then
    statuses[id] = 'in-transit'
  elseif found.main + found.processing == 0 and not may_push_unlisted(found) then
    statuses[id] = 'elsewhere'
  elseif not delay_ms and state_of(found, now_ms) == 'buried' then
    statuses[id] = 'already-buried'
    already_buried[#already_buried + 1] = id
  else
    statuses[id] = delay_ms and 'delayed' or 'buried'
    moved[#moved + 1] = id
  end
end
if not dry_run then
  -- The guards first, because a server that is out of memory refuses them.
  local zset, first_ms, scores, listed = delay_ms and delayed or buried, now_ms + (delay_ms or 0), {}, {}
  for i, id in ipairs(moved) do
    local at_ms = first_ms + i / 1000
    if delay_ms then
      guard_delayed(id, at_ms, now_ms)
    else
      guard_buried(id, reason)
    end
    scores[2 * i - 1], scores[2 * i], listed[i] = as_ms(at_ms), id, id
  end
  if counts_try then
    count_returns(moved, returns_of(moved))
  end
  for _, id in ipairs(already_buried) do
    -- The time of burial stays, and so does the reason unless it is replaced.
    local kept = reason_of(facts[id].new) or reason_of(facts[id].old)
    guard_buried(id, not replaces_reason and kept or reason)
    listed[#listed + 1] = id
  end
  if present[delayed] then
    for_all('ZREM', delayed, already_buried)
  end
  remove_entries(listed, facts)
  unschedule(moved, facts)
  for_all('ZADD', zset, scores)
end
return outcome_reply(ids, statuses, facts)
