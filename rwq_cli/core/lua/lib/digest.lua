-- Recognizing items: one may be completed, and a new one added under its ID, between two looks. Larger data is
-- recognized by both ends and the length.
local END_BYTES = 256

-- The type of an ID's data key; and for a string, a short digest of both ends, hexadecimal.
local function digest_of(id)
  local key = item_prefix .. id
  local data = read_string('GETRANGE', key, 0, END_BYTES - 1)
  local kind = data and data ~= '' and 'string' or redis.call('TYPE', key).ok
  if kind ~= 'string' then
    return kind
  elseif #data == END_BYTES then
    data = redis.call('STRLEN', key) .. ':' .. data .. redis.call('GETRANGE', key, -END_BYTES, -1)
  end
  return kind, string.sub(redis.sha1hex(data), 1, DIGEST_DIGITS)
end

-- The same as `fingerprint` in `core/state/expected.py`.
local function fingerprint(id)
  local key, half = item_prefix .. id, FINGERPRINT_BYTES / 2
  local data = redis.call('GETRANGE', key, 0, FINGERPRINT_BYTES)
  if #data <= FINGERPRINT_BYTES then
    return redis.sha1hex(#data .. ':' .. data)
  end
  return redis.sha1hex(redis.call('STRLEN', key) .. ':' .. string.sub(data, 1, half)
    .. redis.call('GETRANGE', key, -half, -1))
end
