"""Everything that a server holds in one text, made by the server; and which keys were used."""

import redis

_DIGEST = """
local keys, all = redis.call('KEYS', '*'), {}
local function expires(key)
  local at_ms = redis.pcall('PEXPIRETIME', key)
  -- Redis 6.2 does not tell it.
  return type(at_ms) == 'number' and at_ms or math.min(redis.call('PTTL', key), 0)
end
-- A list that was turned round is the same, but its nodes are not.
local function value(key)
  if redis.call('TYPE', key).ok ~= 'list' then
    return redis.call('DUMP', key)
  end
  local entries = redis.call('LRANGE', key, 0, -1)
  for i, entry in ipairs(entries) do
    entries[i] = #entry .. ':' .. entry
  end
  return table.concat(entries)
end
table.sort(keys)
for i, key in ipairs(keys) do
  -- The lock of a clean says nothing of the queue.
  local is_lock = string.match(key, ':clean%-lock$')
  all[i] = is_lock and '' or #key .. ':' .. key .. expires(key) .. ':' .. value(key)
end
return redis.sha1hex(table.concat(all))
"""


def digest(raw: redis.Redis) -> bytes:
    """A digest of every key, its value and when it expires, but not of how long it was not used."""
    found: bytes = raw.eval(_DIGEST, 0)
    return found


_MAKE_IDLE = """
for _, key in ipairs(redis.call('KEYS', '*')) do
  local value, left_ms = redis.call('DUMP', key), math.max(0, redis.call('PTTL', key))
  redis.call('RESTORE', key, left_ms, value, 'REPLACE', 'IDLETIME', ARGV[1])
end
"""


def make_idle(raw: redis.Redis, seconds: int) -> None:
    """Give every key an idle time; this client's own looks are no use of a key any more."""
    raw.execute_command("CLIENT", "NO-TOUCH", "ON")
    raw.eval(_MAKE_IDLE, 0, seconds)


def used_since(raw: redis.Redis, seconds: int) -> list[bytes]:
    """The keys whose idle time is shorter than they were given."""
    return [key for key in raw.scan_iter() if raw.object("IDLETIME", key) < seconds]
