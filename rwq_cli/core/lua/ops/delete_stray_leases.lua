-- Delete leases of IDs that have no data. A worker sets its leases with an expiry, so nothing else would ever
-- end a stray lease that has none.
--
-- include: facts
-- writes: leases DEL
-- arg 1     'endless' for those without expiry, 'ending' for those with one, 'any' for all
-- arg 2..   IDs
-- Returns the IDs whose leases were deleted. A key of the wrong type is not a lease, and stays.
local which, deleted, strays = arg(1), {}, {}
local function is_meant(key)
  return redis.call('TYPE', key).ok == 'string'
    and (which == 'any' or (redis.call('PTTL', key) == -1) == (which == 'endless'))
end
for _, id in ipairs(args_from(2)) do
  local before = #strays
  for _, key in ipairs(has_data(id) and {} or lease_keys({ id })) do
    if is_meant(key) then
      strays[#strays + 1] = key
    end
  end
  if #strays > before then
    deleted[#deleted + 1] = id
  end
end
if not dry_run then
  for_all('DEL', nil, strays)
end
return deleted
