-- Count one return less of each item whose holder still has its lease: its worker was told to stop, and a clean that
-- returns the item, because the worker was then killed, is not to count that. Returns how many counts were changed.
-- include: schedule
-- writes: returns HMGET HSET HDEL
-- rest words  IDs, each followed by the holder that must have its lease
local ids, owners = split_pairs(words)
local facts, counts, changed = read_facts(ids), returns_of(ids), 0
for _, id in ipairs(ids) do
  local count = session_of(facts[id]) == owners[id] and counts[id] or 0
  if count > 1 then
    redis.call('HSET', returns, id, string.format('%.0f', count - 1))
  elseif count == 1 then
    redis.call('HDEL', returns, id)
  end
  changed = changed + (count > 0 and 1 or 0)
end
return changed
