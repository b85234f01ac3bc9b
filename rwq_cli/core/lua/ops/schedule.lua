-- Bury or delay items, wherever they are, and end their leases.
--
-- arg 1..4  how the caller knows where the IDs are: see `lib/locate.lua`
-- arg 5..7  the conditions that the items must still meet: see `lib/expected.lua`
-- arg 8..10  which of them may be taken: see `lib/taking.lua`
-- arg 11    how long to delay them, ms; 'bury' to bury them; 'rebury' to bury them and replace the reason of
--           those that are already buried
-- arg 12    the reason to bury them, bytes
-- arg 13    '1' to count a return of each that it delays or buries, because an attempt of it failed, else '0'
-- arg 14..  IDs, each once
-- Returns the outcomes of `outcome_reply`: buried, already-buried, delayed, not-owner, missing,
-- changed, in-transit, wrong-type, elsewhere.
local delay_ms, replaces_reason, reason = tonumber(arg(11)), arg(11) == 'rebury', arg(12)
local counts_attempt, ids = arg(13) == '1', ids_from(14)
local facts, refusal = facts_to_take(ids, counts_attempt)
if refusal then
  return refusal
end
local statuses, moved, already_buried, now_ms = {}, {}, {}, clock_ms()
for _, id in ipairs(ids) do
  local found = facts[id]
  statuses[id] = untaken_status(id, found, now_ms)
  if not statuses[id] and not delay_ms and state_of(found, now_ms) == 'buried' then
    statuses[id] = 'already-buried'
    already_buried[#already_buried + 1] = id
  elseif not statuses[id] then
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
  if counts_attempt then
    count_returns(moved, returns_of(moved))
  end
  for _, id in ipairs(already_buried) do
    -- The time of burial stays, and so does the reason unless it is replaced.
    guard_buried(id, not replaces_reason and reason_of(facts[id]) or reason)
    listed[#listed + 1] = id
  end
  if present[delayed] then
    for_all('ZREM', delayed, already_buried)
  end
  remove_entries(listed)
  unschedule(moved, facts)
  for_all('ZADD', zset, scores)
end
return outcome_reply(ids, statuses, facts)
