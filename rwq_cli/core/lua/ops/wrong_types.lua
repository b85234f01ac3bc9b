-- Find the keys that exist and are not strings: { key, type, key, type, ... }. Writes nothing.
-- rest keys
local reply = {}
for _, key in ipairs(keys) do
  local found = redis.call('TYPE', key).ok
  if found ~= 'string' and found ~= 'none' then
    reply[#reply + 1], reply[#reply + 2] = key, found
  end
end
return reply
