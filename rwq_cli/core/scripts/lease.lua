-- Lease items: pop, read and lease in one step, dropping ghosts on the way.
--
-- arg 1  holder of the lease, bytes
-- arg 2  lease time, ms
-- arg 3  how many items at most
-- arg 4  how many bytes of data to stop after (the item that crosses it is still taken)
-- arg 5  how many entries of main to look at, at most
-- Returns { ghosts dropped, ID, data, ID, data, ... }.
-- Error WRONGTYPE, naming the key, if the next item's data is no string: nothing was taken.
local refusal = denied(
  { 'RPOP', main },
  { 'LPUSH', processing, 'x' },
  { 'SET', lease_prefix .. 'x', 'x' },
  { 'SET', old_lease_prefix .. 'x', 'x' }
)
if refusal then
  return refusal
end
local holder, lease_ms = arg(1), arg(2)
local count_max, bytes_max = tonumber(arg(3)), tonumber(arg(4))
local page = redis.call('LRANGE', main, -tonumber(arg(5)), -1)
local reply, taken, seen, passed, bytes = { 0 }, {}, {}, 0, 0
for at = #page, 1, -1 do
  if #taken >= count_max or bytes >= bytes_max then
    break
  end
  local id = page[at]
  local data = redis.pcall('GET', item_prefix .. id)
  if type(data) == 'table' then
    if string.sub(data.err, 1, 9) ~= 'WRONGTYPE' then
      return data
    end
    if passed == 0 then
      return redis.error_reply('WRONGTYPE ' .. item_prefix .. id
        .. ' holds another type than the protocol says: it is the data of the next item')
    end
    break
  end
  passed = passed + 1
  -- A second entry of what is taken here, or of what somebody works on, is dropped like a ghost: it
  -- comes back by a clean if they fail.
  if data and not seen[id]
      and not (has_lease(id) and redis.call('LPOS', processing, id)) then
    seen[id] = true
    taken[#taken + 1] = id
    reply[#reply + 1] = id
    reply[#reply + 1] = data
    bytes = bytes + #data
  end
end
-- All is read; now the writes.
if passed > 0 then
  redis.call('RPOP', main, passed)
  push_all('LPUSH', processing, taken)
  for _, id in ipairs(taken) do
    set_lease(id, holder, lease_ms)
  end
end
reply[1] = passed - #taken
return reply
