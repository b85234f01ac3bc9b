-- Of IDs in Q:delayed or Q:buried, find those that may be something else than delayed or buried items: for want
-- of data, of a whole guard, or because they are in both. Writes nothing.
--
-- arg 1..   IDs
-- Returns the doubtful IDs.
local ids = args_from(1)
local facts, doubtful = read_facts(ids), {}
for _, id in ipairs(ids) do
  local found = facts[id]
  if found.data ~= 'string' or not is_guarded(found) or (found.due_ms and found.buried_ms) then
    doubtful[#doubtful + 1] = id
  end
end
return doubtful
