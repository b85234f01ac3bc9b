"""Whose a key is that begins with a queue's name."""

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.foreign_keys import ForeignKeys, shadowed_by_name
from rwq_cli.core.keys import QueueKeys
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
