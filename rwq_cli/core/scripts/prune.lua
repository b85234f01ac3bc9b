-- Remove entries of Q:cleaning, Q:delayed, Q:buried and Q:returns that belong to nothing any more.
--
-- arg 1     which: 'cleaning' | 'delayed' | 'buried' | 'returns'
-- arg 2..   IDs that looked superfluous a grace period ago
-- Returns the IDs whose entry was removed. Entries of delayed, buried and returns go only while the
-- item has no data; entries of cleaning go also when it has: the caller saw it to be in a list.
local refusal = denied(
  { 'LREM', cleaning, 0, 'x' },
  { 'ZREM', delayed, 'x' },
  { 'ZREM', buried, 'x' },
  { 'HDEL', returns, 'x' },
  { 'DEL', lease_prefix .. 'x' },
  { 'DEL', old_lease_prefix .. 'x' }
)
if refusal then
  return refusal
end
local which, ids = arg(1), args_from(2)
local pruned = {}
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
    if which == 'buried' then
      -- Its guard has no expiry and would stay for ever.
      local holder = lease_holder(id)
      if holder and string.sub(holder, 1, 11) == 'rwq-buried:' then
        drop_lease(id)
      end
    end
  end
  if removed > 0 then
    pruned[#pruned + 1] = id
  end
end
return pruned
