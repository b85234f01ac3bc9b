-- Remove stale entries of Q:cleaning, Q:delayed, Q:buried and Q:returns.
-- include: schedule
-- writes: cleaning LREM; delayed ZREM; buried ZREM; returns HDEL; leases DEL GET
-- commands: purge, clean light, clean deep, doctor --fix
-- budget: 500 items  three reads and writes for each
-- arg which  'cleaning' | 'delayed' | 'buried' | 'returns'
-- arg sample:number  for 'returns', how many counts to look at, chosen at random; 0 for those of the IDs
-- rest ids  whose entries looked stale
-- Returns the IDs whose entry was removed. Entries of delayed, buried and returns are removed only if the item has no
-- data. Entries of cleaning are removed even if it has: the caller saw the item in another structure.
local key = ({ cleaning = cleaning, delayed = delayed, buried = buried, returns = returns })[which]
local lookup = ({ cleaning = 'LPOS', returns = 'HEXISTS' })[which] or 'ZSCORE'
local pruned, sampled = {}, sample > 0 and present[returns] and redis.call('HRANDFIELD', returns, sample)
for _, id in ipairs(sampled or ids) do
  local entry = redis.call(lookup, key, id)
  if entry and (which == 'cleaning' or entry ~= 0 and not has_data(id)) then
    pruned[#pruned + 1] = id
  end
end
if dry_run then
  return pruned
elseif which == 'cleaning' then
  for _, id in ipairs(pruned) do
    redis.call('LREM', cleaning, 0, id)
  end
else
  delete_entries(pruned, key)
  -- A leftover guard would keep cleaners away from a new item with this ID.
  delete_guards(which ~= 'returns' and pruned or {})
end
return pruned
