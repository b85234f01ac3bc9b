"""Whose a key is that begins with a queue's name."""

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.foreign_keys import (
    ForeignKeys,
    find_wrong_keys,
    may_be_in_nested_queue,
    shadowed_by_name,
)
from rwq_cli.core.inspect.nested_queues import exclude_nested_queues, nested_names
from rwq_cli.core.keys import STRUCTURE_TYPES, QueueKeys
from rwq_cli.core.server.connection import Connection
from tests.conftest import Foreign


def foreign_keys(*keys: bytes) -> tuple[int, list[bytes]]:
    sorter = ForeignKeys(QueueKeys(b"jobs"))
    for key in keys:
        sorter.add(key)
    tally = sorter.unowned()
    return tally.count, tally.examples


def test_an_empty_server_has_no_foreign_keys() -> None:
    assert foreign_keys() == (0, [])


def test_keys_of_no_queue() -> None:
    keys = [b"jobs:notes", b"jobs:queue2", b"jobs:\xff\n", b"jobs:", b"jobs:x:items:1", b"jobs:6"]
    assert foreign_keys(*keys) == (6, keys[:5])


@pytest.mark.parametrize(
    "key",
    [
        *(b"jobs:high:queue", b"jobs:high:processing", b"jobs:high:returns", b"jobs:a:b:queue"),
        *(b"jobs:high:item:1", b"jobs:high:item:queue", b"jobs:\n:item:\xff"),
    ],
)
def test_keys_of_a_queue_with_a_longer_name(key: bytes) -> None:
    assert foreign_keys(key) == (0, [])


def test_a_lease_that_was_left_over_makes_no_queue() -> None:
    lease = b"jobs:high:lease:1"
    assert foreign_keys(lease) == (1, [lease])
    assert foreign_keys(lease, b"jobs:high:queue") == (0, [])
    assert foreign_keys(b"jobs:low:item:1", lease) == (1, [lease])


def test_keys_of_many_queues_with_longer_names() -> None:
    names = [b"jobs:%d" % number for number in range(12_000)]
    leases = [name + b":lease:1" for name in names]
    assert foreign_keys(*leases[1:], *(name + b":queue" for name in names), *leases) == (0, [])
    assert foreign_keys(*leases, *(name + b":queue" for name in names[2:])) == (2, leases[:2])


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


class TestWrongKeys:
    def test_in_a_healthy_queue(self, queue: WorkQueue, foreign: Foreign, raw: Redis) -> None:
        foreign.waiting(b"a")
        foreign.leased(b"b")
        foreign.buried(b"c")
        raw.hset("jobs:result:a", mapping={"status": "completed", "completed_ms": 5})
        Foreign(raw, b"jobs:high").waiting(b"a")
        found = find_wrong_keys(queue)
        assert (found.wrong_type.count, found.shadowing) == (0, [])

    @pytest.mark.parametrize("prefix", ["item", "lease", "leased_by_session"])
    def test_keys_of_every_type_are_counted(
        self, queue: WorkQueue, raw: Redis, prefix: str
    ) -> None:
        raw.hset(f"jobs:{prefix}:hash", "x", "y")
        raw.lpush(f"jobs:{prefix}:list", "x")
        raw.sadd(f"jobs:{prefix}:set", "x")
        raw.zadd(f"jobs:{prefix}:zset", {"x": 1})
        raw.xadd(f"jobs:{prefix}:stream", {"x": "y"})
        found = find_wrong_keys(queue).wrong_type
        assert found.count == 5
        assert set(found.examples) == {
            f"jobs:{prefix}:{kind}".encode() for kind in ("hash", "list", "set", "zset", "stream")
        }

    def test_no_result_in_the_place_of_one(self, queue: WorkQueue, raw: Redis) -> None:
        """But nothing that may be another queue's."""
        raw.hset("jobs:result:hash", "x", "y")
        raw.hset("jobs:result:half", "status", "completed")
        raw.set("jobs:result:string", "x")
        raw.lpush("jobs:result:list", "x")
        raw.hset("jobs:result:returns", "1", 1)
        raw.set("jobs:result:x:item:1", "data")
        found = find_wrong_keys(queue).wrong_type
        assert found.count == 4
        assert set(found.examples) == {
            *(b"jobs:result:hash", b"jobs:result:half", b"jobs:result:list", b"jobs:result:string")
        }

    def test_a_queue_among_the_items(self, queue: WorkQueue, raw: Redis) -> None:
        inner = Foreign(raw, b"jobs:item:x")
        inner.waiting(b"a")
        raw.hset("jobs:item:x:returns", "a", 1)
        raw.hset("jobs:item:x:result:a", "x", "y")
        raw.hset("jobs:item:xy", "x", "y")
        found = find_wrong_keys(queue)
        assert found.shadowing == [b"jobs:item:x"]
        assert found.wrong_type.examples == [b"jobs:item:xy"]

    @pytest.mark.parametrize("suffix", STRUCTURE_TYPES)
    @pytest.mark.parametrize("kind", ["list", "zset", "hash"])
    def test_one_structure_of_the_right_type_makes_a_nested_queue(
        self, queue: WorkQueue, raw: Redis, suffix: bytes, kind: str
    ) -> None:
        key = b"jobs:item:x" + suffix
        if kind == "list":
            raw.lpush(key, "1")
        elif kind == "zset":
            raw.zadd(key, {"1": 1})
        else:
            raw.hset(key, "1", 1)
        raw.set("jobs:item:x:item:1", "data")
        found, is_one = find_wrong_keys(queue), STRUCTURE_TYPES[suffix] == kind
        assert found.shadowing == [b"jobs:item:x"] * is_one
        assert found.wrong_type.count == 1 - is_one
        assert nested_names(queue) == (b"jobs:item:x",) * is_one
        ids = [b"x:item:1"]
        assert exclude_nested_queues(queue, ids, (queue.keys.item_prefix,)) == ids * (1 - is_one)

    def test_a_glob_in_a_name_is_literal(self, connection: Connection, raw: Redis) -> None:
        raw.hset("job1:item:a", "x", "y")
        raw.hset("job?:item:b", "x", "y")
        assert find_wrong_keys(WorkQueue(connection, b"job?")).wrong_type.examples == [
            b"job?:item:b"
        ]


@pytest.mark.parametrize(
    ("name", "outer"),
    [
        (b"a:item", [b"a"]),
        (b"a:item:x", [b"a"]),
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
