-- Give up claims: delete the leases that the caller still holds.
--
-- arg 1   the value of the lease
-- arg 2.. IDs
-- Returns how many keys were deleted.
local value, mine = arg(1), {}
for _, key in ipairs(lease_keys(args_from(2))) do
  if lease_value(key) == value then
    mine[#mine + 1] = key
  end
end
return for_all('DEL', nil, mine)
