-- Read the facts that decide most states, for many IDs at one instant. Writes nothing.
--
-- arg 1..   IDs
-- Returns, for each ID: 0 no data, 1 data, 2 a data key that holds no string; ms left of its lease
-- (-1 no expiry, -2 none); holder or ''.
local ids, reply = args_from(1), {}
local holders, values = lease_holders(ids)
for i, id in ipairs(ids) do
  local holder = holders[id]
  local ttl = -2
  if holder then
    ttl = lease_left_ms(id, holder, values[2 * i - 1], values[2 * i])
  end
  local kind = redis.call('TYPE', item_prefix .. id).ok
  reply[3 * i - 2] = kind == 'none' and 0 or kind == 'string' and 1 or 2
  reply[3 * i - 1] = ttl
  reply[3 * i] = holder or ''
end
return reply
