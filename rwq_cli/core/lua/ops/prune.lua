-- Remove stale entries of Q:cleaning, Q:delayed, Q:buried and Q:returns.
--
-- include: schedule
-- writes: cleaning LREM RPOP LPUSH; delayed ZREM; buried ZREM; returns HDEL; leases DEL GET
-- arg 1     'cleaning' | 'delayed' | 'buried' | 'returns'
-- arg 2     for 'cleaning', how many of its oldest entries to pop at once; those that are not among the IDs
--           are pushed at the other end, because their order does not matter. 0 to look up each ID in the
--           whole list, for a few IDs
-- arg 3     how many entries to skip first: in a dry run, those that earlier calls examined; else 0
-- arg 4..   IDs whose entries looked stale
-- Returns the IDs whose entry was removed. Entries of delayed, buried and returns are removed only if the
-- item has no data. Entries of cleaning are removed even if it has: the caller saw the item in another
-- structure.
local which, page_size, skip, ids = arg(1), tonumber(arg(2)), tonumber(arg(3)), args_from(4)
local pruned = {}
if which == 'cleaning' and page_size > 0 then
  local is_stale, kept = {}, {}
  local page = redis.call('LRANGE', cleaning, -(skip + page_size), -(skip + 1))
  for _, id in ipairs(ids) do
    is_stale[id] = true
  end
  for at = #page, 1, -1 do
    local into = is_stale[page[at]] and pruned or kept
    into[#into + 1] = page[at]
  end
  if #page > 0 and not dry_run then
    redis.call('RPOP', cleaning, #page)
    for_all('LPUSH', cleaning, kept)
  end
  return pruned
end
local key = ({ cleaning = cleaning, delayed = delayed, buried = buried, returns = returns })[which]
local lookup_commands = { cleaning = 'LPOS', delayed = 'ZSCORE', buried = 'ZSCORE', returns = 'HEXISTS' }
for _, id in ipairs(ids) do
  local found = redis.call(lookup_commands[which], key, id)
  if found and not (which == 'returns' and found == 0) and (which == 'cleaning' or not has_data(id)) then
    pruned[#pruned + 1] = id
  end
end
if dry_run then
  return pruned
end
if which == 'cleaning' then
  for _, id in ipairs(pruned) do
    redis.call('LREM', cleaning, 0, id)
  end
else
  for_all(which == 'returns' and 'HDEL' or 'ZREM', key, pruned)
  if which ~= 'returns' then
    -- A leftover guard would keep cleaners away from a new item with this ID.
    delete_guards(pruned)
  end
end
return pruned
