-- Restore the guards of delayed and buried items that are missing under a name, or end too early.
--
-- include: locate, schedule
-- writes: leases SET GET; server TIME
-- arg lost_reason  the reason to give for a buried item that has lost its own
-- rest ids  IDs, each once
-- Returns the outcomes of `outcome_reply`: guarded, skipped for what is not `is_unguarded`, elsewhere.
local facts, now_ms = read_facts(ids), clock_ms()
locate(ids, facts)
local statuses, buries, delays = {}, {}, {}
for _, id in ipairs(ids) do
  local found = facts[id]
  local state = found.main and state_of(found, now_ms)
  if not state then
    statuses[id] = 'elsewhere'
  -- A delayed item may have become due since the caller looked.
  elseif not is_unguarded(found, state == 'due' and 'delayed' or state, now_ms) then
    statuses[id] = 'skipped'
  else
    statuses[id] = 'guarded'
    if found.buried_ms then
      buries[id] = reason_of(found) or lost_reason
    else
      delays[id] = found.due_ms
    end
  end
end
if not dry_run then
  for id, reason in pairs(buries) do
    guard_buried(id, reason)
  end
  for id, due_ms in pairs(delays) do
    guard_delayed(id, due_ms, now_ms)
  end
end
return outcome_reply(ids, statuses, facts)
