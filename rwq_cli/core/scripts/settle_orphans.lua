-- End our guards: what was in no list while it was guarded goes onto main, the rest is let go.
--
-- arg 1     value of the guard
-- arg 2     '1' to return the items, '0' to let them go as they are
-- arg 3     what came back so often already is buried instead of being returned; -1 for never
-- arg 4..   IDs
-- Returns, for each ID acted on: ID, 'returned' | 'buried'. One whose guard is no longer ours is left
-- alone: a worker that had popped it leased it, or somebody completed or released it.
-- Uses: places, returning
local bury_after = tonumber(arg(3))
local refusal = denied(
  { 'DEL', lease_prefix .. 'x' },
  { 'DEL', old_lease_prefix .. 'x' }
) or denied_to_bring_back(bury_after)
if refusal then
  return refusal
end
local guard, give_back, ids = arg(1), arg(2) == '1', args_from(4)
local returned, ours = {}, {}
local exists, counts = with_data(ids), returns_of(ids)
local in_main, in_processing = just_pushed(main), just_pushed(processing)
for _, id in ipairs(ids) do
  local new_key, old_key = lease_prefix .. id, old_lease_prefix .. id
  local new, old = redis.pcall('GET', new_key), redis.pcall('GET', old_key)
  if new == guard then
    ours[#ours + 1] = new_key
  end
  if old == guard then
    ours[#ours + 1] = old_key
  end
  local alone = new == guard and old == guard
  if give_back and alone and exists[id] and not in_main[id] and not in_processing[id] then
    returned[#returned + 1] = id
  end
end
for_all('DEL', nil, ours)
local is_buried, reply = bring_back(returned, counts, bury_after), {}
for at, id in ipairs(returned) do
  reply[2 * at - 1] = id
  reply[2 * at] = is_buried[id] and 'buried' or 'returned'
end
return reply
