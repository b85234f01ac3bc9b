-- Lease items: pop, read and lease in one step, dropping ghosts on the way.
--
-- arg 1  holder of the lease, bytes
-- arg 2  lease time, ms
-- arg 3  how many items at most
-- arg 4  how many bytes of data to stop after (the item that crosses it is still taken)
-- arg 5  how many entries of main to look at, at most
-- arg 6  '1' to return the data, '0' for an empty string in its place
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
local count_max, bytes_max, wants_data = tonumber(arg(3)), tonumber(arg(4)), arg(6) == '1'

-- How many items are read at once. One call for many costs the server a quarter of a call for each,
-- but what is read beyond `bytes_max` is read in vain.
local READ_ITEMS, READ_BYTES = 32, 262144

local page = redis.call('LRANGE', main, -tonumber(arg(5)), -1)
local reply, taken, leases, seen = { 0 }, {}, {}, {}
local count, passed, bytes, largest = 0, 0, 0, 0
local at, stopped = #page, false
while at >= 1 and count < count_max and bytes < bytes_max and not stopped do
  local chunk = math.min(at, READ_ITEMS, count_max - count)
  if passed == 0 then
    -- Nothing is known yet of the sizes here.
    chunk = math.min(chunk, 4)
  elseif largest > 0 then
    chunk = math.min(chunk, math.max(1, math.floor(READ_BYTES / largest)))
  end
  local data_keys, lease_keys = {}, {}
  for i = 1, chunk do
    local id = page[at + 1 - i]
    data_keys[i] = item_prefix .. id
    lease_keys[2 * i - 1] = lease_prefix .. id
    lease_keys[2 * i] = old_lease_prefix .. id
  end
  local values = redis.call('MGET', unpack(data_keys))
  local some_leased = redis.call('EXISTS', unpack(lease_keys)) > 0
  for i = 1, chunk do
    local id, data = page[at], values[i]
    if not data and redis.call('EXISTS', data_keys[i]) == 1 then
      -- MGET gives nothing for a key of another type.
      if passed == 0 then
        return redis.error_reply('WRONGTYPE ' .. data_keys[i]
          .. ' holds another type than the protocol says: it is the data of the next item')
      end
      stopped = true
      break
    end
    if bytes >= bytes_max then
      break
    end
    at = at - 1
    passed = passed + 1
    -- A second entry of what is taken here, or of what somebody works on, is dropped like a ghost: it
    -- comes back by a clean if they fail.
    if data and not seen[id]
        and not (some_leased and has_lease(id) and redis.call('LPOS', processing, id)) then
      seen[id] = true
      count = count + 1
      taken[count] = id
      leases[2 * count - 1] = lease_keys[2 * i - 1]
      leases[2 * count] = lease_keys[2 * i]
      reply[2 * count] = id
      reply[2 * count + 1] = wants_data and data or ''
      bytes = bytes + #data
      largest = math.max(largest, #data)
    end
  end
end
-- All is read; now the writes.
if passed > 0 then
  redis.call('RPOP', main, passed)
  for_all('LPUSH', processing, taken)
  for i = 1, 2 * count do
    redis.call('SET', leases[i], holder, 'PX', lease_ms)
  end
end
reply[1] = passed - count
return reply
