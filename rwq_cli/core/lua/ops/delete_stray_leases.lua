-- Delete leases of IDs that have no data: nothing else would ever end one without expiry.
-- include: facts
-- writes: leases DEL
-- commands: purge, doctor --fix
-- budget: 250 items  two keys are deleted for each
-- arg endless_only:flag  only those without expiry
-- rest ids
-- Returns the IDs whose leases were deleted. A key of the wrong type is not a lease, and stays.
local deleted, strays = {}, {}
for _, id in ipairs(ids) do
  for _, key in ipairs(has_data(id) and {} or lease_keys({ id })) do
    if redis.call('TYPE', key).ok == 'string' and not (endless_only and redis.call('PTTL', key) ~= -1) then
      strays[#strays + 1] = key
      deleted[#deleted + 1] = deleted[#deleted] ~= id and id or nil
    end
  end
end
for_all('DEL', nil, dry_run and {} or strays)
return deleted
