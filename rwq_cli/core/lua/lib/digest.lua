-- Recognizing items: one may be completed, and a new one added under its ID, between two looks. Larger data is
-- recognized by both ends and the length.
-- include: state
local END_BYTES = 256
local SHA1_DIGITS = 40

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

-- The token of an ID's data, which is its length and its SHA-1, or the SHA-1 of both ends: the same as `token_of` in
-- `core/state/expected.py`.
local function token_of(id)
  local key, half = item_prefix .. id, TOKEN_BYTES / 2
  local length, data = redis.call('STRLEN', key), nil
  if length > TOKEN_BYTES then
    data = redis.call('GETRANGE', key, 0, half - 1) .. redis.call('GETRANGE', key, -half, -1)
  else
    data = redis.call('GET', key)
  end
  return length .. ':' .. redis.sha1hex(data or '')
end

-- Whether the data of an ID has another token, or digest. Of data of another length no more is read than of that one.
local function has_other_data(id, token)
  local length = tonumber(string.match(token, '^(%d+):'))
  if not length then
    return select(2, digest_of(id)) ~= token
  elseif length > TOKEN_BYTES then
    return token_of(id) ~= token
  end
  local data = redis.call('GETRANGE', item_prefix .. id, 0, length)
  return #data ~= length or redis.sha1hex(data) ~= string.sub(token, -SHA1_DIGITS)
end

-- Whether an item with data is no longer as its token says: that of its data, ';r' and its count of returns, ';l' and the
-- value of its lease, or some of these in this order.
local function differs_from(token, id, facts)
  local ends = string.find(token, ';', 1, true)
  if not ends then
    return has_other_data(id, token)
  end
  local data, others = string.sub(token, 1, ends - 1), string.sub(token, ends)
  local count, lease = string.match(others, '^;r(%d*)(.*)$')
  lease = string.match(lease or others, '^;l(.*)$')
  return count and (redis.call('HGET', returns, id) or '') ~= count
    or lease and (effective_lease(facts) or '') ~= lease
    or data ~= '' and has_other_data(id, data)
end
