"""What the keys under a queue's name are, by their prefixes and types, and whose."""

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.keyspace import (
    KeyNotes,
    may_be_in_nested_queue,
    names_of_unlisted,
    nested_names,
    shadowed_by_name,
)
from rwq_cli.core.keys import STRUCTURE_TYPES
from rwq_cli.core.server.connection import Connection
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
    """What is noted of these keys."""
    found = KeyNotes(queue)
    found.add(keys)
    return found


def foreign_keys(queue: WorkQueue, *keys: bytes) -> tuple[int, list[bytes]]:
    """Those that belong to no queue."""
    found = notes(queue, list(keys))
    return found.unowned, found.examples


def test_what_of_the_queue_has_the_wrong_type(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    """But nothing that may be another queue's."""
    foreign.leased(b"fine")
    kinds = ["hash", "list", "set", "zset", "stream"]
    for prefix in ("item", "lease", "leased_by_session"):
        for kind in (*kinds, "string"):
            make(raw, f"jobs:{prefix}:{kind}", kind)
    raw.hset("jobs:result:fine", mapping={"status": "completed", "completed_ms": 5})
    raw.hset("jobs:result:half", "status", "completed")
    for kind in ("hash", "list", "string"):
        make(raw, f"jobs:result:{kind}", kind)
    found = notes(queue, raw.keys("jobs:*"))
    assert set(found.wrong_keys()) == {
        *(
            f"jobs:{prefix}:{kind}".encode()
            for kind in kinds
            for prefix in ("item", "lease", "leased_by_session")
        ),
        *(b"jobs:result:hash", b"jobs:result:half", b"jobs:result:list", b"jobs:result:string"),
    }
    assert found.count_results() == 1


@pytest.mark.parametrize("suffix", STRUCTURE_TYPES)
@pytest.mark.parametrize("kind", ["list", "zset", "hash", "string"])
def test_one_structure_of_the_right_type_makes_a_nested_queue(
    queue: WorkQueue, raw: Redis, suffix: bytes, kind: str
) -> None:
    key = b"jobs:item:x" + suffix
    make(raw, key.decode(), kind)
    is_one = STRUCTURE_TYPES[suffix] == kind
    assert nested_names(queue, [key, b"jobs:item:1"]) == (b"jobs:item:x",) * is_one
    assert notes(queue, [key]).nested == (b"jobs:item:x",) * is_one


def test_data_that_nothing_lists_may_be_those_of_a_nested_queue(
    queue: WorkQueue, foreign: Foreign
) -> None:
    ids = [b"x:item:1", b"item:1", b"order:item:5"]
    foreign.data(*ids, b"1", b"items:1")
    assert list(names_of_unlisted(queue, ids)) == [b"jobs:item:x", b"jobs:item", b"jobs:item:order"]
    foreign.waiting(b"order:item:5")
    foreign.delayed(b"item:1", 10**13)
    assert list(names_of_unlisted(queue, ids)) == [b"jobs:item:x"]


@pytest.mark.parametrize(
    ("item_id", "may_be"),
    [
        *((b"item:1", True), (b"x:item:1", True), (b"lease:1", True), (b"x:result:", True)),
        *((b"1", False), (b"item", False), (b"items:1", False), (b"xitem:1", False)),
        *((b"order:item:5", True), (b"a:leased_by_session:\xff", True), (b"", False)),
    ],
)
def test_ids_that_look_like_keys_may_belong_to_another_queue(item_id: bytes, may_be: bool) -> None:
    assert may_be_in_nested_queue(item_id) is may_be


def test_keys_of_no_queue(queue: WorkQueue) -> None:
    assert foreign_keys(queue) == (0, [])
    keys = [b"jobs:notes", b"jobs:queue2", b"jobs:\xff\n", b"jobs:", b"jobs:x:items:1", b"jobs:6"]
    assert foreign_keys(queue, *keys) == (6, keys[:5])
    others = (
        *(b"jobs:high:queue", b"jobs:high:processing", b"jobs:high:returns", b"jobs:a:b:queue"),
        *(b"jobs:high:item:1", b"jobs:high:item:queue", b"jobs:\n:item:\xff", b"jobs:x:lease:1"),
    )
    assert foreign_keys(queue, *others) == (0, [])


@pytest.mark.parametrize(
    ("name", "outer"),
    [
        (b"a:item", [b"a"]),
        (b"a:lease:x", [b"a"]),
        (b"a:item:b:lease:c", [b"a", b"a:item:b"]),
        (b"a:items", []),
        (b"a:high", []),
        (b":item", []),
        (b"other:item", []),
    ],
)
def test_a_name_inside_another_queues_keys_is_shadowed(
    connection: Connection, raw: Redis, name: bytes, outer: list[bytes]
) -> None:
    Foreign(raw, b"a").waiting(b"1")
    Foreign(raw, b"a:item:b").waiting(b"1")
    assert shadowed_by_name(WorkQueue(connection, name)) == outer
