-- Remove entries of Q:cleaning, Q:delayed, Q:buried and Q:returns whose item is gone.
--
-- arg 1     'cleaning' | 'delayed' | 'buried' | 'returns'
-- arg 2     for 'cleaning', how many of its oldest entries to take off at once; those that are not among
--           the IDs go back on at the other end, because their order means nothing. 0 to look for
--           each ID in the whole list, which costs its length: few at a time
-- arg 3     how many entries to skip first: in a dry run, those that earlier calls looked at; else 0
-- arg 4..   IDs that looked superfluous a grace period ago
-- Returns the IDs whose entry was removed. Entries of delayed, buried and returns go only while the item
-- has no data. Entries of cleaning go even if it has: the caller saw the item in a list.
local which, page_size, skip, ids = arg(1), tonumber(arg(2)), tonumber(arg(3)), args_from(4)
local pruned = {}
if which == 'cleaning' and page_size > 0 then
  local superfluous, kept = {}, {}
  local page = redis.call('LRANGE', cleaning, -(skip + page_size), -(skip + 1))
  for _, id in ipairs(ids) do
    superfluous[id] = true
  end
  for at = #page, 1, -1 do
    local into = superfluous[page[at]] and pruned or kept
    into[#into + 1] = page[at]
  end
  if #page > 0 and not dry_run then
    redis.call('RPOP', cleaning, #page)
    for_all('LPUSH', cleaning, kept)
  end
  return pruned
end
local key = ({ cleaning = cleaning, delayed = delayed, buried = buried, returns = returns })[which]
local exists = { cleaning = 'LPOS', delayed = 'ZSCORE', buried = 'ZSCORE', returns = 'HEXISTS' }
for _, id in ipairs(ids) do
  local found = redis.call(exists[which], key, id)
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
    -- What is left of a guard would keep cleaners off a new item of this ID.
    delete_guards(pruned)
  end
end
return pruned
