-- Take, keep or give up a lock of a queue: of what must not be two at once, one is at work at a time.
-- writes clean_lock: clean_lock SET GET DEL
-- commands clean_lock: clean light, clean deep, doctor --fix
-- writes move_lock: move_lock SET GET DEL; moved HGET DEL
-- commands move_lock: mv --to-url
-- arg lock  'clean-lock' | 'move-lock'
-- arg holder  who holds it, unique to this run
-- arg lock_ms:number  how long it lasts, ms; 0 to give it up
-- arg moved  the key of a hash of moved items that is deleted with the lock if its mover is the holder, or ''
-- Returns who else holds it; nil if the caller does, or has given it up.
local refusal = denied(NEEDS[lock == 'clean-lock' and 'clean_lock' or 'move_lock']())
if refusal then
  return refusal
end
local key = string.sub(main, 1, -6) .. lock
local current = read_string('GET', key)
if current == nil then
  return wrong_type(key, redis.call('TYPE', key).ok, 'a string')
elseif current and current ~= holder then
  return current
elseif lock_ms == 0 then
  redis.call('DEL', key)
  if moved ~= '' and redis.call('HGET', moved, '') == holder then
    redis.call('DEL', moved)
  end
else
  redis.call('SET', key, holder, 'PX', lock_ms)
end
