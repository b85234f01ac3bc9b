"""Queues of IDs with random facts, any combination of them, among any number of healthy items."""

from collections.abc import Sequence
from math import inf
from random import Random
from typing import Any

import redis

from rwq_cli.core.keys import SETTLING_GUARD, QueueKeys
from tests.everything import everything

DAY_MS = 86_400_000
HOLDERS = (b"them", b"others", b"rwq-delayed:1", b"rwq-buried:why", b"rwq-settling:kicked")
# Scores that are no times: none has a name in a signed integer of 64 bits.
_NO_TIMES = (inf, -inf, 2.0**70, -(2.0**70))

# Healthy items in one call: waiting ones at both ends of main, and leased ones.
_PAD = """
local name, first, last = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
for i = first, last do
  local id = 'pad-' .. i
  redis.call('SET', name .. ':item:' .. id, 'x')
  if i % 3 == 0 then
    redis.call('LPUSH', name .. ':processing', id)
    redis.call('SET', name .. ':lease:' .. id, 'pad', 'PX', 600000)
    redis.call('SET', name .. ':leased_by_session:' .. id, 'pad', 'PX', 600000)
  else
    redis.call(i % 3 == 1 and 'LPUSH' or 'RPUSH', name .. ':queue', id)
  end
end
"""


def pad(raw: redis.Redis, keys: QueueKeys, count: int, first: int = 1) -> list[bytes]:
    """Add healthy items, two thirds waiting and one leased; returns their IDs."""
    raw.eval(_PAD, 0, keys.name, first, first + count - 1)
    return [b"pad-%d" % number for number in range(first, first + count)]


def make_broken(
    raw: redis.Redis,
    keys: QueueKeys,
    ids: Sequence[bytes],
    seed: int,
    *,
    wrong_types: bool = True,
) -> None:
    """Give each ID facts of its own, which the seed decides; some keys have wrong types."""
    random = Random(seed)
    seconds, _ = raw.time()
    now_ms = seconds * 1000
    writes = raw.pipeline(transaction=False)
    in_main: list[bytes] = []
    in_processing: list[bytes] = []
    wrong: set[bytes] = set()
    for item_id in ids:
        is_wrong = wrong_types and random.random() < 0.1
        if is_wrong:
            leases = keys.lease(item_id), keys.old_lease(item_id)
            others = [keys.item(item_id)], [keys.result(item_id)]
            for key in random.choice((*others, leases[:1], leases[1:], leases)):
                wrong.add(key)
                writes.rpush(key, b"no string")
        if random.random() < 0.85 and keys.item(item_id) not in wrong:
            writes.set(keys.item(item_id), b"data of " + item_id)
        in_main += [item_id] * random.choice((0, 0, 0, 1, 1, 2))
        in_processing += [item_id] * random.choice((0, 0, 0, 1, 1, 2))
        if random.random() < 0.15:
            writes.lpush(keys.cleaning, item_id)
        guard = random.choice((b"rwq-delayed:1", b"rwq-buried:why", None, None))
        for key in (keys.lease(item_id), keys.old_lease(item_id)):
            holder = guard or random.choice((None, None, *HOLDERS))
            if holder is not None and key not in wrong:
                left_ms = random.choice((None, 600_000, 900_000))
                # Exact times, because which of two leases ends later is a fact.
                writes.set(key, holder, pxat=left_ms and now_ms + left_ms)
        if guard == b"rwq-delayed:1" or random.random() < 0.15:
            due_ms = now_ms + random.choice((-DAY_MS, DAY_MS))
            writes.zadd(keys.delayed, {item_id: _score(random, due_ms)})
        if guard == b"rwq-buried:why" or random.random() < 0.15:
            writes.zadd(keys.buried, {item_id: _score(random, now_ms - DAY_MS)})
        if random.random() < 0.2:
            writes.hset(keys.returns, item_id, random.choice((1, 3, 1, 3, b"many", b"1.5", b"")))
        if random.random() < 0.1 and keys.result(item_id) not in wrong:
            fields = {"status": "completed", "completed_ms": now_ms, "holder": "them"}
            writes.hset(keys.result(item_id), mapping=fields)
    random.shuffle(in_main)
    random.shuffle(in_processing)
    if in_main:
        writes.lpush(keys.main, *in_main)
    if in_processing:
        writes.lpush(keys.processing, *in_processing)
    writes.execute()


def _score(random: Random, time_ms: int) -> float:
    """The time, or now and then no time."""
    return time_ms if random.random() < 0.85 else random.choice(_NO_TIMES)


def traces(raw: redis.Redis, keys: QueueKeys, ids: Sequence[bytes]) -> dict[bytes, Any]:
    """All that the server holds of each ID; of scores and times left whether there are any."""
    seen = everything(raw)

    def of(key: bytes, kind: type) -> tuple[Any, bool]:
        value, at_ms = seen.get(key, (None, -2))
        return value if value is None or isinstance(value, kind) else "wrong type", at_ms >= 0

    def entries(key: bytes, kind: type) -> Any:
        return of(key, kind)[0] or kind()

    lists = [entries(key, list) for key in (keys.main, keys.processing, keys.cleaning)]
    zsets = [entries(key, dict) for key in (keys.delayed, keys.buried)]
    returns = entries(keys.returns, dict)
    found = {}
    for item_id in ids:
        leases = (of(key, bytes) for key in (keys.lease(item_id), keys.old_lease(item_id)))
        result, expires = of(keys.result(item_id), dict)
        found[item_id] = (
            of(keys.item(item_id), bytes)[0],
            (result.get(b"status") if isinstance(result, dict) else result, expires),
            [each.count(item_id) for each in lists],
            [(_lease(value), expires) for value, expires in leases],
            [item_id in each for each in zsets],
            returns.get(item_id),
        )
    return found


def _lease(value: Any) -> Any:
    """The value of a lease key; a guard's or a settling lease's without its time."""
    if isinstance(value, bytes) and value.startswith(SETTLING_GUARD):
        return value.partition(b" ")[0]
    is_guard = isinstance(value, bytes) and value.startswith(b"rwq-delayed:")
    return b"rwq-delayed:" if is_guard else value
