-- Delete results that have not changed since they were read, and whose items are gone. Returns how many.
-- include: facts
-- writes: result DEL
-- commands: purge
-- budget: 250 items  a key of several fields is deleted for each
-- rest args  for each: ID; its completion time as the result gives it, unix ms
local outdated, ids, times = {}, split_pairs(args)
for _, id in ipairs(ids) do
  local key = result_prefix .. id
  if result_kind(key) == 'result' and not has_data(id) and redis.call('HGET', key, 'completed_ms') == times[id] then
    outdated[#outdated + 1] = key
  end
end
return dry_run and #outdated or for_all('DEL', nil, outdated)
