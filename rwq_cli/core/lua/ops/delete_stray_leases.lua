-- Delete the leases of IDs that have no data.
--
-- arg 1..   IDs
-- Returns how many keys were deleted. A key that holds no string belongs to somebody else.
local strays = {}
for _, id in ipairs(args_from(1)) do
  for _, key in ipairs(has_data(id) and {} or lease_keys({ id })) do
    if redis.call('TYPE', key).ok == 'string' then
      strays[#strays + 1] = key
    end
  end
end
return dry_run and #strays or for_all('DEL', nil, strays)
