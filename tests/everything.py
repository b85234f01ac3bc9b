"""All that a server holds, with its values and times."""

from typing import Any

import redis

# Each key, its type, its value, and when it expires.
LOOK = """
local seen = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind, value = redis.call('TYPE', key).ok
  if kind == 'string' then
    value = redis.call('GET', key)
  elseif kind == 'list' then
    value = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'zset' then
    value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'hash' then
    value = redis.call('HGETALL', key)
  else
    value = redis.call('DUMP', key)
  end
  local at_ms = redis.pcall('PEXPIRETIME', key)
  -- Redis 6.2 does not tell it.
  at_ms = type(at_ms) == 'number' and at_ms or math.min(redis.call('PTTL', key), 0)
  seen[#seen + 1] = { key, kind, value, at_ms }
end
return seen
"""


def everything(raw: redis.Redis) -> dict[bytes, tuple[Any, int]]:
    """Every key with its value and when it expires, unix ms; negative for never.

    Not the locks of cleans and moves, which say nothing of a queue.
    """
    return {
        key: (_whole(kind, value), at_ms)
        for key, kind, value, at_ms in raw.eval(LOOK, 0)
        if not key.endswith((b":clean-lock", b":move-lock"))
    }


def _whole(kind: bytes, value: Any) -> Any:
    if kind == b"zset":
        scores = map(float, value[1::2])
        return dict(zip(value[::2], scores, strict=True))
    return dict(zip(value[::2], value[1::2], strict=True)) if kind == b"hash" else value
