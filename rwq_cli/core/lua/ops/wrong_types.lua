-- Find keys that are not strings, and their types. Writes nothing.
--
-- rest keys
-- Returns { key, type, key, type, ... } of those that exist and are not strings.
local reply = {}
for _, key in ipairs(keys) do
  local found = redis.call('TYPE', key).ok
  if found ~= 'string' and found ~= 'none' then
    reply[#reply + 1], reply[#reply + 2] = key, found
  end
end
return reply
