-- Lease items: pop, read and lease in one step, dropping ghosts on the way.
--
-- arg 1  holder of the lease, bytes
-- arg 2  lease time, ms
-- arg 3  how many items at most
-- arg 4  how many bytes of data to return at most (the item that crosses it is still taken)
-- arg 5  how many entries of main to look at, at most
-- arg 6  '1' to return the data, '0' for an empty string in its place
-- What is due is promoted first, a page of it.
-- Returns { entries dropped, more due, due in, returns, ID, data, ID, data, ... }: how many ghosts were
-- dropped; 1 if more than this call could promote is due, else 0; ms until the next delayed item is due,
-- -1 if there is none, which is read only where nothing was leased; how often a clean brought each item
-- back, in order, none at all where nobody counted.
-- Error WRONGTYPE, naming the key, if the next item's data is no string: nothing was taken.
-- Uses: guards, promoting
local refusal = denied(
  { 'RPOP', main },
  { 'LPUSH', processing, 'x' },
  { 'SET', lease_prefix .. 'x', 'x' },
  { 'SET', old_lease_prefix .. 'x', 'x' }
) or denied_to_promote()
if refusal then
  return refusal
end
local holder, lease_ms = arg(1), arg(2)
local count_max, bytes_max, wants_data = tonumber(arg(3)), tonumber(arg(4)), arg(6) == '1'

-- Of so many entries the leases are asked for at once, because nearly always none of them has one.
local CHUNK = 32

-- The data of an item, or its length where the data are not wanted; false where there are none. Asked
-- for one by one: what many of them together weigh is known only when they have been read.
local function read(id)
  local data = redis.pcall(wants_data and 'GET' or 'STRLEN', item_prefix .. id)
  if data == 0 and not has_data(id) then
    return false
  end
  return data
end

-- So much in front of the lease itself keeps the call short.
local PROMOTE_MAX = 100
local now_ms = present[delayed] and clock_ms() or 0
local _, _, unproven, due = promote_due(PROMOTE_MAX, 0, now_ms)
local more_due = (#unproven > 0 or due == PROMOTE_MAX) and 1 or 0

local page = redis.call('LRANGE', main, -tonumber(arg(5)), -1)
local reply, taken, leases, seen = { 0, more_due, -1, {} }, {}, {}, {}
local count, passed, bytes = 0, 0, 0
local at, stopped = #page, false
while at >= 1 and count < count_max and bytes < bytes_max and not stopped do
  local chunk = math.min(at, CHUNK, count_max - count)
  local ids = {}
  for i = 1, chunk do
    ids[i] = page[at + 1 - i]
  end
  local keys = lease_keys(ids)
  local some_leased = redis.call('EXISTS', unpack(keys)) > 0
  for i, id in ipairs(ids) do
    if bytes >= bytes_max then
      break
    end
    local data = read(id)
    if type(data) == 'table' then
      if string.sub(data.err, 1, 9) ~= 'WRONGTYPE' then
        return data
      end
      if passed == 0 then
        return redis.error_reply('WRONGTYPE ' .. item_prefix .. id
          .. ' holds another type than the protocol says: it is the data of the next item')
      end
      stopped = true
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
      leases[2 * count - 1] = keys[2 * i - 1]
      leases[2 * count] = keys[2 * i]
      reply[2 * count + 3] = id
      reply[2 * count + 4] = wants_data and data or ''
      bytes = bytes + (wants_data and #data or 0)
    end
  end
end
if present[returns] and count > 0 then
  reply[4] = redis.call('HMGET', returns, unpack(taken))
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
if count == 0 then
  reply[3] = due_in_ms(now_ms)
end
return reply
