-- Delete leases of IDs that have no data. A worker sets its leases with an expiry, so nothing else would ever
-- end a stray lease that has none.
--
-- include: facts
-- writes: leases DEL
-- arg endless_only:flag  only those without expiry
-- rest ids
-- Returns the IDs whose leases were deleted. A key of the wrong type is not a lease, and stays.
local deleted, strays = {}, {}
for _, id in ipairs(ids) do
  local before = #strays
  for _, key in ipairs(has_data(id) and {} or lease_keys({ id })) do
    if redis.call('TYPE', key).ok == 'string' and not (endless_only and redis.call('PTTL', key) ~= -1) then
      strays[#strays + 1] = key
    end
  end
  deleted[#deleted + 1] = #strays > before and id or nil
end
if not dry_run then
  for_all('DEL', nil, strays)
end
return deleted
