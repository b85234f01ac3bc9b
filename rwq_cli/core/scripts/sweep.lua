-- Delete the leases and the result of IDs that have no data.
--
-- arg 1     prefix of the keys of results, bytes
-- arg 2..   IDs
-- Returns how many keys were deleted. A key of another type than ours belongs to somebody else.
local refusal = denied(
  { 'DEL', lease_prefix .. 'x' },
  { 'DEL', old_lease_prefix .. 'x' },
  { 'DEL', arg(1) .. 'x' }
)
if refusal then
  return refusal
end
local result_prefix, ids = arg(1), args_from(2)
local deleted = 0
for _, id in ipairs(ids) do
  if not has_data(id) then
    for key, kind in pairs({
      [lease_prefix .. id] = 'string',
      [old_lease_prefix .. id] = 'string',
      [result_prefix .. id] = 'hash',
    }) do
      if redis.call('TYPE', key).ok == kind then
        deleted = deleted + redis.call('DEL', key)
      end
    end
  end
end
return deleted
