-- Delete leases without expiry that belong to no item: nothing else would ever end them. A worker sets
-- its leases with a TTL, so one that has none and no item is nobody's.
--
-- arg 1..   IDs whose lease looked so a grace period ago
-- Returns the IDs of which a lease was deleted.
local deleted = {}
for _, id in ipairs(args_from(1)) do
  local endless = {}
  for _, key in ipairs(has_data(id) and {} or lease_keys({ id })) do
    if redis.call('TYPE', key).ok == 'string' and redis.call('PTTL', key) == -1 then
      endless[#endless + 1] = key
    end
  end
  if #endless > 0 then
    deleted[#deleted + 1] = id
    if not dry_run then
      for_all('DEL', nil, endless)
    end
  end
end
return deleted
