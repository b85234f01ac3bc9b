-- Read the facts that the keys and scores of IDs say, at one instant. Writes nothing.
--
-- arg 1..   IDs
-- Returns { unix ms now, ... } and then, for each ID: the type of its data key; the value of its new lease
-- key, and the ms left of it, -1 for no expiry, -2 for no lease, -3 for a key that holds no string; the
-- same of its old lease key;
-- its due time and its time of burial, unix ms, or ''; how often a clean returned it, or ''.
local ids = args_from(1)
local reply, facts = { string.format('%.0f', math.floor(clock_ms())) }, read_facts(ids)
local counts = present[returns] and #ids > 0 and read_all('HMGET', returns, ids) or {}
for i, id in ipairs(ids) do
  local found, at = facts[id], 8 * i - 6
  reply[at] = found.data
  reply[at + 1] = text_of(found.new)
  reply[at + 2] = left_of(found, 'new')
  reply[at + 3] = text_of(found.old)
  reply[at + 4] = left_of(found, 'old')
  reply[at + 5] = found.due_ms and as_score(found.due_ms) or ''
  reply[at + 6] = found.buried_ms and as_score(found.buried_ms) or ''
  reply[at + 7] = counts[i] or ''
end
return reply
