-- Take, keep or give up the lock of a queue's cleans: one is at work at a time.
-- writes: lock SET GET DEL
-- commands: clean light, clean deep, doctor --fix
-- arg holder  who holds it, unique to this run
-- arg lock_ms:number  how long it lasts, ms; 0 to give it up
-- Returns who else holds it; nil if the caller does, or has given it up.
local key = string.sub(main, 1, -6) .. 'clean-lock'
local found = read_string('GET', key)
if found == nil then
  return wrong_type(key, redis.call('TYPE', key).ok, 'a string')
elseif found and found ~= holder then
  return found
elseif lock_ms == 0 then
  redis.call('DEL', key)
else
  redis.call('SET', key, holder, 'PX', lock_ms)
end
