-- Remove entries of Q:cleaning, Q:delayed, Q:buried and Q:returns that belong to nothing any more.
--
-- arg 1     which: 'cleaning' | 'delayed' | 'buried' | 'returns'
-- arg 2     of 'cleaning', how many of its oldest entries to take off at once, of which those that are
--           not among the IDs go back on at the other end: their order means nothing to anybody. 0 to
--           look for each ID in all of the list, which costs its length: few at a time
-- arg 3..   IDs that looked superfluous a grace period ago
-- Returns the IDs whose entry was removed. Entries of delayed, buried and returns go only while the
-- item has no data; entries of cleaning go also when it has: the caller saw it to be in a list.
-- Uses: guards
local refusal = denied(
  { 'LREM', cleaning, 0, 'x' },
  { 'RPOP', cleaning },
  { 'LPUSH', cleaning, 'x' },
  { 'ZREM', delayed, 'x' },
  { 'ZREM', buried, 'x' },
  { 'HDEL', returns, 'x' },
  { 'DEL', lease_prefix .. 'x' },
  { 'DEL', old_lease_prefix .. 'x' }
)
if refusal then
  return refusal
end
local which, page_size, ids = arg(1), tonumber(arg(2)), args_from(3)
local pruned = {}
if which == 'cleaning' and page_size > 0 then
  local superfluous, kept, page = {}, {}, redis.call('LRANGE', cleaning, -page_size, -1)
  for _, id in ipairs(ids) do
    superfluous[id] = true
  end
  for at = #page, 1, -1 do
    local into = superfluous[page[at]] and pruned or kept
    into[#into + 1] = page[at]
  end
  if #page > 0 then
    redis.call('RPOP', cleaning, #page)
    for_all('LPUSH', cleaning, kept)
  end
  return pruned
end
for _, id in ipairs(ids) do
  local removed = 0
  if which == 'cleaning' then
    removed = redis.call('LREM', cleaning, 0, id)
  elseif not has_data(id) then
    if which == 'delayed' then
      removed = redis.call('ZREM', delayed, id)
    elseif which == 'buried' then
      removed = redis.call('ZREM', buried, id)
    else
      removed = redis.call('HDEL', returns, id)
    end
    if which ~= 'returns' then
      -- What is left of its guard would keep cleaners off a new item of this ID.
      drop_guards(id)
    end
  end
  if removed > 0 then
    pruned[#pruned + 1] = id
  end
end
return pruned
