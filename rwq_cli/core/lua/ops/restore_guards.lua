-- Put back the guards of delayed and buried items that are missing under a name.
--
-- include: schedule
-- writes: leases SET GET; server TIME
-- arg lost_reason  the reason to give for a buried item that has lost its own
-- rest ids  that the caller found in no list
-- Returns the IDs that were guarded: those that are still delayed or buried, unguarded, held by no session, and not
-- among the entries that were pushed last.
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
    local value, expiry = GUARDS.buried .. (reason_of(found) or lost_reason), {}
    if not found.buried_ms then
      local lasts_ms
      value, lasts_ms = delayed_guard(found.due_ms, now_ms)
      expiry = { 'PX', lasts_ms }
    end
    for _, key in ipairs(dry_run and {} or lease_keys({ id })) do
      redis.call('SET', key, value, 'NX', unpack(expiry))
    end
  end
end
return guarded
