-- Put back the guards of delayed and buried items that are missing under a name.
--
-- include: schedule
-- writes: leases SET GET; server TIME
-- arg lost_reason  the reason to give for a buried item that has lost its own
-- rest ids  that the caller found in no list
-- Returns the IDs that were guarded: those that are still delayed or buried, unguarded, held by no session, and
-- not among the entries that were pushed last.
local RECENT_ENTRIES = 500
local facts, now_ms, recent, guarded = read_facts(ids), clock_ms(), {}, {}
for _, list in ipairs({ main, processing }) do
  for _, id in ipairs(redis.call('LRANGE', list, 0, RECENT_ENTRIES - 1)) do
    recent[id] = true
  end
end
for _, id in ipairs(ids) do
  local found = facts[id]
  if found.data == 'string' and (found.due_ms or found.buried_ms)
      and not (recent[id] or has_wrong_type(found) or is_guarded(found) or session_of(found)) then
    guarded[#guarded + 1] = id
  end
end
for _, id in ipairs(dry_run and {} or guarded) do
  local value, lasts_ms = GUARDS.buried .. (reason_of(facts[id]) or lost_reason), nil
  if not facts[id].buried_ms then
    value, lasts_ms = delayed_guard(facts[id].due_ms, now_ms)
  end
  for _, key in ipairs(lease_keys({ id })) do
    if lasts_ms then
      redis.call('SET', key, value, 'NX', 'PX', lasts_ms)
    else
      redis.call('SET', key, value, 'NX')
    end
  end
end
return guarded
