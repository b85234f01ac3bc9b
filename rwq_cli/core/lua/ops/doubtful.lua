-- Of IDs in Q:delayed or Q:buried, find those that may be listed elsewhere: they have no whole guard, or are
-- in both. Writes nothing.
--
-- arg 1..   IDs
-- Returns the doubtful IDs.
local ids, doubtful = args_from(1), {}
local values, due, burials = lease_values(ids), scores_of(delayed, ids), scores_of(buried, ids)
-- Not `read_facts`: an ID behind a whole guard is listed whatever its data key holds, so that a listing
-- of IDs alone reads no data keys.
local found = {}
for i = 1, #ids do
  found.new, found.old = values[2 * i - 1], values[2 * i]
  found.due_ms, found.buried_ms = due[i] or nil, burials[i] or nil
  if not is_guarded(found) or (found.due_ms and found.buried_ms) then
    doubtful[#doubtful + 1] = ids[i]
  end
end
return doubtful
