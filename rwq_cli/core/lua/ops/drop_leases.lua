-- Delete leases without expiry that belong to no item: nothing else would ever end them.
--
-- arg 1..   IDs whose lease looked so a grace period ago
-- Returns the IDs whose lease was deleted. A worker sets its leases with a time to live, so one that
-- has none and no item is nobody's; one that ends is left to end by itself.
local refusal = denied(
  { 'DEL', lease_prefix .. 'x' },
  { 'DEL', old_lease_prefix .. 'x' }
)
if refusal then
  return refusal
end
local dropped = {}
for _, id in ipairs(args_from(1)) do
  if not has_data(id) then
    local removed = 0
    for _, key in ipairs({ lease_prefix .. id, old_lease_prefix .. id }) do
      if redis.call('TYPE', key).ok == 'string' and redis.call('PTTL', key) == -1 then
        removed = removed + redis.call('DEL', key)
      end
    end
    if removed > 0 then
      dropped[#dropped + 1] = id
    end
  end
end
return dropped
