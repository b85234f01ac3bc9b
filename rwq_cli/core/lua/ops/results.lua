-- Read the results of completed items, each at one instant, until the budget of bytes is reached. Writes nothing.
-- include: facts
-- writes: result TYPE HMGET HEXISTS HSTRLEN HGET PTTL
-- commands: result
-- budget: 1500 items  three reads for each
-- arg wants_data:flag  return the data of the results, not only their sizes
-- arg bytes_max:number  the budget of bytes
-- rest ids
-- Returns, for each ID that was read: '1' if an item exists with this ID, else '0'; its `result_kind`; and for a result
-- its status, its completion time, its holder, the size of its data, the data, and the ms left until it expires, -1 for
-- no expiry; nil for each that is not there.
local reply, bytes = {}, 0
for _, id in ipairs(ids) do
  if bytes >= bytes_max then
    break
  end
  local key, at, fields = result_prefix .. id, #reply, {}
  local kind = result_kind(key)
  if kind == 'result' then
    fields = redis.call('HMGET', key, 'status', 'completed_ms', 'holder')
    if redis.call('HEXISTS', key, 'result') == 1 then
      fields[4] = redis.call('HSTRLEN', key, 'result')
      fields[5] = wants_data and redis.call('HGET', key, 'result')
      bytes = bytes + (fields[5] and fields[4] or 0)
    end
    fields[6] = redis.call('PTTL', key)
  end
  reply[at + 1], reply[at + 2] = has_data(id) and '1' or '0', kind
  for field = 1, 6 do
    reply[at + 2 + field] = fields[field] or false
  end
end
return reply
