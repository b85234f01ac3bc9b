"""What the keys under a queue's name are, by their prefixes and types, and whose."""

from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.keyspace import (
    KeyNotes,
    may_be_in_nested_queue,
    names_of_unlisted,
    nested_names,
)
from rwq_cli.core.keys import STRUCTURE_TYPES
from tests.conftest import Foreign


def make(raw: Redis, key: str, kind: str) -> None:
    """A key of a type."""
    making = {
        "hash": lambda: raw.hset(key, "x", "y"),
        "list": lambda: raw.lpush(key, "x"),
        "set": lambda: raw.sadd(key, "x"),
        "zset": lambda: raw.zadd(key, {"x": 1}),
        "stream": lambda: raw.xadd(key, {"x": "y"}),
        "string": lambda: raw.set(key, "x"),
    }
    making[kind]()


def notes(queue: WorkQueue, keys: list[bytes]) -> KeyNotes:
    found = KeyNotes(queue)
    found.add(keys)
    return found


def test_what_of_the_queue_has_the_wrong_type(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    """But nothing that may be another queue's."""
    foreign.leased(b"fine")
    kinds = ["hash", "list", "set", "zset", "stream"]
    prefixes = ("item", "lease", "leased_by_session")
    for prefix in prefixes:
        for kind in (*kinds, "string"):
            make(raw, f"jobs:{prefix}:{kind}", kind)
    raw.hset("jobs:result:fine", mapping={"status": "completed", "completed_ms": 5})
    raw.hset("jobs:result:half", "status", "completed")
    for kind in ("hash", "list", "string"):
        make(raw, f"jobs:result:{kind}", kind)
    found = notes(queue, raw.keys("jobs:*"))
    assert set(found.wrong_keys()) == {
        *(f"jobs:{prefix}:{kind}".encode() for kind in kinds for prefix in prefixes),
        *(b"jobs:result:hash", b"jobs:result:half", b"jobs:result:list", b"jobs:result:string"),
    }
    assert found.count_results() == 1


def test_one_structure_of_the_right_type_makes_a_nested_queue(queue: WorkQueue, raw: Redis) -> None:
    for suffix, right in STRUCTURE_TYPES.items():
        for kind in ("list", "zset", "hash", "string"):
            raw.flushall()
            key = b"jobs:item:x" + suffix
            make(raw, key.decode(), kind)
            nested = (b"jobs:item:x",) * (kind == right)
            assert nested_names(queue, [key, b"jobs:item:1"]) == nested
            assert notes(queue, [key]).nested == nested


def test_data_that_nothing_lists_may_be_those_of_a_nested_queue(
    queue: WorkQueue, foreign: Foreign
) -> None:
    ids = [b"x:item:1", b"item:1", b"order:item:5"]
    foreign.data(*ids, b"1", b"items:1")
    assert list(names_of_unlisted(queue, ids)) == [b"jobs:item:x", b"jobs:item", b"jobs:item:order"]
    foreign.waiting(b"order:item:5")
    foreign.delayed(b"item:1", 10**13)
    assert list(names_of_unlisted(queue, ids)) == [b"jobs:item:x"]
    nested = (b"item:1", b"x:item:1", b"lease:1", b"x:result:", b"a:leased_by_session:\xff")
    others = (b"1", b"item", b"items:1", b"xitem:1", b"")
    assert [i for i in (*nested, *others) if may_be_in_nested_queue(i)] == [*nested]


def test_keys_of_no_queue(queue: WorkQueue) -> None:
    keys = [b"jobs:notes", b"jobs:queue2", b"jobs:\xff\n", b"jobs:", b"jobs:x:items:1", b"jobs:6"]
    others = [
        *(b"jobs:high:queue", b"jobs:high:processing", b"jobs:high:returns", b"jobs:a:b:queue"),
        *(b"jobs:high:item:1", b"jobs:high:item:queue", b"jobs:\n:item:\xff", b"jobs:x:lease:1"),
    ]
    found = notes(queue, [*others, *keys])
    assert (found.unowned, found.examples) == (6, keys[:5])
