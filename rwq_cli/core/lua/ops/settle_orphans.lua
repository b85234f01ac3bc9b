-- End our guards: what was in no list while it was guarded goes onto main, the rest is let go.
--
-- arg 1     value of the guard
-- arg 2     '1' to return the items, '0' to let them go as they are
-- arg 3     what came back so often already is buried instead of being returned; -1 for never
-- arg 4..   IDs
-- Returns, for each ID acted on: ID, 'returned' | 'buried'. One whose guard is no longer ours is left
-- alone: a worker that had popped it leased it, or somebody completed or released it.
-- Uses: settling, returning
local bury_after = tonumber(arg(3))
local refusal = denied(
  { 'DEL', lease_prefix .. 'x' },
  { 'DEL', old_lease_prefix .. 'x' }
) or denied_to_bring_back(bury_after)
if refusal then
  return refusal
end
local ids = args_from(4)
local counts = returns_of(ids)
local ours, unlisted = still_guarded(ids, arg(1))
local returned = arg(2) == '1' and unlisted or {}
for_all('DEL', nil, ours)
local is_buried, reply = bring_back(returned, counts, bury_after), {}
for at, id in ipairs(returned) do
  reply[2 * at - 1] = id
  reply[2 * at] = is_buried[id] and 'buried' or 'returned'
end
return reply
