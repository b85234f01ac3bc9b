-- Lease one item wherever it waits: anywhere in main, or for its time, or to be kicked.
--
-- arg 1  holder of the lease, bytes
-- arg 2  lease time, ms
-- arg 3  '1' to return the data, '0' for an empty string in its place
-- arg 4  the ID
-- Returns { found, holder, time left, data, returns }. found is 'waiting' where it is leased now; else nothing was
-- changed, and it is 'gone', 'abandoned' or 'orphaned', or 'leased' or 'unlisted' with who holds the
-- lease ('' where that cannot be read) and its time left, ms, -1 for no expiry. returns is how often a
-- clean brought it back, '' where nobody counted.
local refusal = denied(
  { 'LREM', main, 0, 'x' },
  { 'LREM', processing, 0, 'x' },
  { 'LPUSH', processing, 'x' },
  { 'SET', lease_prefix .. 'x', 'x' },
  { 'SET', old_lease_prefix .. 'x', 'x' },
  { 'ZREM', delayed, 'x' },
  { 'ZREM', buried, 'x' }
)
if refusal then
  return refusal
end
local holder, lease_ms, wants_data, id = arg(1), arg(2), arg(3) == '1', arg(4)
local exists, odd = with_data_of_right_type({ id })
if odd then
  return odd
end
if not exists[id] then
  return { 'gone', '', -2, '', '' }
end

-- Whose lease it is, the later ending one of two: a guard of ours is nobody's.
local worker, left_ms, guards, guard, guard_left_ms = false, -2, 0, '', -2
for _, key in ipairs(lease_keys({ id })) do
  local value, ttl_ms = redis.pcall('GET', key), redis.call('PTTL', key)
  if type(value) == 'table' then
    value = ''
  end
  if value and is_guard(value) then
    guards, guard, guard_left_ms = guards + 1, value, ttl_ms
  elseif value and (not worker or ttl_ms == -1 or (left_ms ~= -1 and ttl_ms > left_ms)) then
    worker, left_ms = value, ttl_ms
  end
end
local is_scheduled = redis.call('ZSCORE', delayed, id) or redis.call('ZSCORE', buried, id)
-- Not even a guard of both generations proves that it is in no list: the add_item of upstream 0.1 pushes
-- what was put away without a look.
local in_processing = redis.call('LPOS', processing, id)
if worker and in_processing then
  return { 'leased', worker, left_ms, '', '' }
end
local data = wants_data and redis.call('GET', item_prefix .. id) or ''
local count = present[returns] and redis.call('HGET', returns, id) or ''

-- All else is read and checked. Where this finds nothing, it changes nothing: to look first would pass
-- over the list twice.
local waits = redis.call('LREM', main, 0, id) > 0
if not waits then
  if worker then
    return { 'unlisted', worker, left_ms, '', '' }
  elseif in_processing and not (is_scheduled and guards > 0) then
    return { 'abandoned', '', -2, '', '' }
  elseif not is_scheduled and guards > 0 then
    return { 'unlisted', guard, guard_left_ms, '', '' }
  elseif not is_scheduled then
    return { 'orphaned', '', -2, '', '' }
  end
end
if in_processing then
  redis.call('LREM', processing, 0, id)
end
redis.call('ZREM', delayed, id)
redis.call('ZREM', buried, id)
redis.call('LPUSH', processing, id)
set_lease(id, holder, lease_ms)
return { 'waiting', '', -2, data, count }
