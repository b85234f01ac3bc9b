-- Recognizing items: an item may be completed, and a new one added under its ID, between two looks.

-- Larger data is identified by both ends and the length.
local END_BYTES = 256

-- The type of an ID's data key; and for a string, its identity: a short digest of both ends, hexadecimal.
-- IDENTITY_DIGITS is made from `core/lua/__init__.py`.
local function identify(id)
  local key = item_prefix .. id
  local data = redis.pcall('GETRANGE', key, 0, END_BYTES - 1)
  if type(data) == 'table' then
    if string.sub(data.err, 1, 9) ~= 'WRONGTYPE' then
      error(data)
    end
    return redis.call('TYPE', key).ok
  elseif data == '' and redis.call('EXISTS', key) == 0 then
    return 'none'
  elseif #data == END_BYTES then
    data = redis.call('STRLEN', key) .. ':' .. data .. redis.call('GETRANGE', key, -END_BYTES, -1)
  end
  -- fakeredis has no sha1hex; there, only the state tells one item from another.
  return 'string', redis.sha1hex and string.sub(redis.sha1hex(data), 1, IDENTITY_DIGITS)
    or string.rep('0', IDENTITY_DIGITS)
end

-- For replies: the identity of an item that neither a session nor a guard protects, else ''. Other items
-- need no second look.
local function identity_reply(id, facts)
  if facts.data ~= 'string' or session_of(facts) or is_guarded(facts) then
    return ''
  end
  local _, identity = identify(id)
  return identity or ''
end
