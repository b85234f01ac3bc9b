-- Take, keep or give up the lock of a queue's cleans: one is at work at a time.
--
-- writes: lock SET GET DEL
-- arg 1   who holds it, unique to this run
-- arg 2   how long it lasts, ms; 0 to give it up
-- Returns who else holds it; nil if the caller does, or has given it up.
local key, value, lock_ms = string.sub(main, 1, -6) .. 'clean-lock', arg(1), arg(2)
local holder = read_string('GET', key)
if holder == nil then
  return wrong_type(key, redis.call('TYPE', key).ok, 'a string')
elseif holder and holder ~= value then
  return holder
elseif lock_ms == '0' then
  redis.call('DEL', key)
else
  redis.call('SET', key, value, 'PX', lock_ms)
end
return nil
