-- Guard what looked orphaned a grace period ago and still has data and no lease.
--
-- arg 1     value of the guard, unique to this run of this cleaner
-- arg 2     how long it lasts, ms: if we die, the item is an orphan again after that
-- arg 3..   IDs
-- Returns the IDs that were guarded. Every cleaner of every language leaves them alone meanwhile.
local refusal = denied(
  { 'SET', lease_prefix .. 'x', 'x' },
  { 'SET', old_lease_prefix .. 'x', 'x' }
)
if refusal then
  return refusal
end
local guard, guard_ms, ids = arg(1), arg(2), args_from(3)
local claimed = {}
for _, id in ipairs(ids) do
  -- A key of another type is the structure of another queue, or nothing of ours.
  if redis.call('TYPE', item_prefix .. id).ok == 'string' and not has_lease(id) then
    set_lease(id, guard, guard_ms)
    claimed[#claimed + 1] = id
  end
end
return claimed
