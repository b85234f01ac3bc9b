-- Read the results of completed items, each at one instant. Writes nothing.
--
-- include: facts, results
-- writes: result TYPE HMGET HEXISTS HSTRLEN HGET PTTL
-- arg wants_data:flag  return the data of the results, not only their sizes
-- arg bytes_max:number  stop after this many bytes of data; the result that reaches the limit is still read
-- rest ids
-- Returns, for each ID that was read: '1' if an item exists with this ID, else '0'; what its result key
-- holds: 'none', 'result', or the type of a key that is not a result; and for a result its status, its
-- completion time, its holder or nil, the size of its data or nil, the data or nil, and the ms left until
-- it expires, -1 for no expiry. For any other key six nils.
local reply, bytes = {}, 0
for _, id in ipairs(ids) do
  if bytes >= bytes_max then
    break
  end
  local key, size, data = result_prefix .. id, false, false
  local kind, at = result_kind(key), #reply
  reply[at + 1], reply[at + 2] = has_data(id) and '1' or '0', kind
  if kind == 'result' then
    local status, completed_ms, holder = unpack(redis.call('HMGET', key, 'status', 'completed_ms', 'holder'))
    if redis.call('HEXISTS', key, 'result') == 1 then
      size = redis.call('HSTRLEN', key, 'result')
      data = wants_data and redis.call('HGET', key, 'result')
      bytes = bytes + (data and size or 0)
    end
    reply[at + 3], reply[at + 4], reply[at + 5] = status, completed_ms, holder
    reply[at + 6], reply[at + 7], reply[at + 8] = size, data, redis.call('PTTL', key)
  else
    for field = 3, 8 do
      reply[at + field] = false
    end
  end
end
return reply
