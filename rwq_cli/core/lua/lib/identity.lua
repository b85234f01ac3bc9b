-- Recognizing items: an item may be completed, and a new one added under its ID, between two looks. Or rwq may
-- have pushed it, so that a worker may have popped it, and be about to set its lease.
--
-- include: facts

-- Larger data is identified by both ends and the length.
local END_BYTES = 256

-- The time of a push as digits of an identity: distinct for all pushes of about a minute.
local PUSH_TIMES = 16 ^ PUSH_DIGITS - 1
local NOT_PUSHED = string.rep('0', PUSH_DIGITS)

-- When rwq pushed an item, as its settling lease tells, in hexadecimal digits; zeros without such a lease.
local function push_time(new, old)
  local value = is_settling(new) and new or is_settling(old) and old
  local pushed_ms = value and tonumber(string.match(value, '%d+$'))
  return pushed_ms and string.format('%0' .. PUSH_DIGITS .. 'x', pushed_ms % PUSH_TIMES + 1) or NOT_PUSHED
end

-- The type of an ID's data key; and for a string, its identity, hexadecimal: a short digest of both ends, then
-- the `push_time`. DATA_DIGITS and PUSH_DIGITS are made from `core/lua/__init__.py`.
--
-- new, old  the values of its lease keys
local function identify(id, new, old)
  local key = item_prefix .. id
  local data = read_string('GETRANGE', key, 0, END_BYTES - 1)
  if data == nil then
    return redis.call('TYPE', key).ok
  elseif data == '' and redis.call('EXISTS', key) == 0 then
    return 'none'
  elseif #data == END_BYTES then
    data = redis.call('STRLEN', key) .. ':' .. data .. redis.call('GETRANGE', key, -END_BYTES, -1)
  end
  -- fakeredis has no sha1hex; there, only the state tells one item from another.
  local digest = redis.sha1hex and string.sub(redis.sha1hex(data), 1, DATA_DIGITS) or string.rep('0', DATA_DIGITS)
  return 'string', digest .. push_time(new, old)
end

-- Whether an identity is that of the item that was seen: it has the same data, and was not pushed since. The
-- same as `is_same` in `core/state/seen.py`.
local function is_same(identity, seen)
  local pushed = string.sub(identity, DATA_DIGITS + 1)
  return string.sub(identity, 1, DATA_DIGITS) == string.sub(seen, 1, DATA_DIGITS)
    and (pushed == NOT_PUSHED or pushed == string.sub(seen, DATA_DIGITS + 1))
end

-- For replies: the identity of an item that neither a session nor a guard protects, else ''. Other items
-- need no second look.
local function identity_reply(id, facts)
  if facts.data ~= 'string' or session_of(facts) or is_guarded(facts) then
    return ''
  end
  local _, identity = identify(id, facts.new, facts.old)
  return identity or ''
end
