"""Queues of IDs with random facts, any combination of them, among any number of healthy items."""

from collections.abc import Sequence
from math import inf
from random import Random
from typing import Any

import redis

from rwq_cli.core.keys import QueueKeys

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
    """All that the server holds of each ID; of times left whether there is one."""
    main, processing = raw.lrange(keys.main, 0, -1), raw.lrange(keys.processing, 0, -1)
    cleaning = raw.lrange(keys.cleaning, 0, -1)
    entries = {name: dict(raw.zscan_iter(key)) for name, key in _zsets(keys)}
    returns = raw.hgetall(keys.returns)
    found = {}
    reads = raw.pipeline(transaction=False)
    for item_id in ids:
        reads.get(keys.item(item_id))
        for key in (keys.lease(item_id), keys.old_lease(item_id)):
            reads.get(key).ttl(key)
        reads.hget(keys.result(item_id), "status").ttl(keys.result(item_id))
    replies = iter(_or_wrong_type(reply) for reply in reads.execute(raise_on_error=False))
    for item_id in ids:
        data = next(replies)
        leases = [(_lease(next(replies)), next(replies) >= 0) for _ in range(2)]
        result = (next(replies), next(replies) >= 0)
        found[item_id] = (
            data,
            result,
            main.count(item_id),
            processing.count(item_id),
            cleaning.count(item_id),
            leases,
            # Which score a new entry gets depends on the time.
            item_id in entries["delayed"],
            item_id in entries["buried"],
            returns.get(item_id),
        )
    return found


def _or_wrong_type(reply: Any) -> Any:
    """The reply, or `b"wrong type"` for the error that the key's type is not the command's."""
    if isinstance(reply, Exception):
        assert str(reply).startswith("WRONGTYPE")
        return b"wrong type"
    return reply


def _lease(value: bytes | None) -> bytes | None:
    """The value of a lease key; a guard's or a settling lease's without its time."""
    if value is not None and value.startswith(b"rwq-settling:"):
        return value.partition(b" ")[0]
    return b"rwq-delayed:" if value and value.startswith(b"rwq-delayed:") else value


def _zsets(keys: QueueKeys) -> tuple[tuple[str, bytes], ...]:
    return ("delayed", keys.delayed), ("buried", keys.buried)
