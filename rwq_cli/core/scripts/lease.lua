-- Lease items: pop, read and lease in one step, dropping ghosts on the way.
--
-- arg 1  holder of the lease, bytes
-- arg 2  lease time, ms
-- arg 3  how many items at most
-- arg 4  how many bytes of data to stop after (the item that crosses it is still taken)
-- arg 5  how many ghosts to drop at most, so that one call stays short
-- Returns { ghosts dropped, ID, data, ID, data, ... }.
-- Error WRONGTYPE, naming the key, if the next item's data is no string: nothing was taken.
check_types()
local holder, lease_ms = arg(1), arg(2)
local count_max, bytes_max, ghosts_max = tonumber(arg(3)), tonumber(arg(4)), tonumber(arg(5))
local reply, bytes, ghosts = { 0 }, 0, 0
while (#reply - 1) / 2 < count_max and bytes < bytes_max and ghosts < ghosts_max do
  local id = redis.call('LINDEX', main, -1)
  if not id then
    break
  end
  local data = redis.pcall('GET', item_prefix .. id)
  if type(data) == 'table' and data.err then
    if #reply > 1 or ghosts > 0 then
      break
    end
    return redis.error_reply('WRONGTYPE the data key of the next item holds no string: '
      .. item_prefix .. id)
  end
  redis.call('RPOP', main)
  if data then
    redis.call('LPUSH', processing, id)
    set_lease(id, holder, lease_ms)
    reply[#reply + 1] = id
    reply[#reply + 1] = data
    bytes = bytes + #data
  else
    ghosts = ghosts + 1
  end
end
reply[1] = ghosts
return reply
