-- Delete the leases of IDs that have no data.
--
-- arg 1..   IDs
-- Returns how many keys were deleted. A key of another type than ours belongs to somebody else.
local refusal = denied(
  { 'DEL', lease_prefix .. 'x' },
  { 'DEL', old_lease_prefix .. 'x' }
)
if refusal then
  return refusal
end
local ids = args_from(1)
local deleted = 0
for _, id in ipairs(ids) do
  if not has_data(id) then
    for _, key in ipairs({ lease_prefix .. id, old_lease_prefix .. id }) do
      if redis.call('TYPE', key).ok == 'string' then
        deleted = deleted + redis.call('DEL', key)
      end
    end
  end
end
return deleted
