-- Among IDs in Q:delayed or Q:buried, find those that may be in another state: they are in both, or lack a
-- guard under one name. Writes nothing.
--
-- include: facts
-- rest ids
-- Returns those IDs.
local ambiguous = {}
-- Not `read_facts`: a guarded ID is listed even if its data key has the wrong type, so that a listing of IDs
-- reads no data keys. MGET returns nil for a key of the wrong type, which is not a guard.
local values = redis.call('MGET', unpack(lease_keys(ids)))
local due, burials = scores_of(delayed, ids), scores_of(buried, ids)
local found = {}
for i = 1, #ids do
  found.new, found.old = values[2 * i - 1], values[2 * i]
  found.due_ms, found.buried_ms = due[i] or nil, burials[i] or nil
  if not is_guarded(found) or (found.due_ms and found.buried_ms) then
    ambiguous[#ambiguous + 1] = ids[i]
  end
end
return ambiguous
