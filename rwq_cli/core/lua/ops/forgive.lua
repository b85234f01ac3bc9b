-- Count one return less of each item whose holder still has its lease: its worker was told to stop, and may be killed
-- before it has ended. So a clean that then returns the item does not count that.
--
-- include: schedule
-- writes: returns HMGET HSET HDEL
-- rest words  IDs, each followed by the holder that must have its lease
-- Returns how many counts were changed.
local ids, owners = split_pairs(words)
local facts, counts, changed = read_facts(ids), returns_of(ids), 0
for _, id in ipairs(ids) do
  local count = counts[id] or 0
  if count > 0 and session_of(facts[id]) == owners[id] then
    changed = changed + 1
    if count == 1 then
      redis.call('HDEL', returns, id)
    else
      redis.call('HSET', returns, id, string.format('%.0f', count - 1))
    end
  end
end
return changed
