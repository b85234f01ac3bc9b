"""Keys of a queue, and those of another that only look like them."""

from redis import Redis

from rwq_cli.core import Connection, WorkQueue
from rwq_cli.core.inspect.nested_queues import (
    exclude_nested_queues,
    member_ids,
    nested_names,
    owners_of,
)
from rwq_cli.core.keys import QueueKeys
from tests.conftest import Backend, Foreign


def ids(queue: WorkQueue, *prefixes: bytes) -> list[bytes]:
    """What the walk finds, sorted."""
    names = nested_names(queue)
    return sorted(i for page in member_ids(queue, prefixes, names) for i in page)


def test_the_ids_of_a_prefix(queue: WorkQueue, keys: QueueKeys, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"\xff\n")
    foreign.leased(b"l", generations="old")
    assert ids(queue, keys.item_prefix) == [b"a", b"l", b"\xff\n"]
    assert ids(queue, keys.lease_prefix, keys.old_lease_prefix) == [b"l"]


def test_queues_with_similar_names_are_left_alone(
    queue: WorkQueue, backend: Backend, keys: QueueKeys, raw: Redis, foreign: Foreign
) -> None:
    for name in (b"jobs:item", b"jobs:item:mail", b"jobs:lease:x"):
        other = WorkQueue(backend.connect(), name)
        other.add(b"data", b"1")
        other.add(b"data", b"2")
        other.lease()
    foreign.waiting(b"mine", b"mail", b"mailbox:item:1")
    assert nested_names(queue) == (b"jobs:item", b"jobs:item:mail", b"jobs:lease:x")
    assert ids(queue, keys.item_prefix) == [b"mail", b"mailbox:item:1", b"mine"]
    assert ids(queue, keys.lease_prefix, keys.old_lease_prefix) == []
    assert raw.exists("jobs:lease:x:item:1") == 1


def test_a_longer_name_and_glob_characters(connection: Connection, raw: Redis) -> None:
    strange = QueueKeys(b"j[o]*")
    raw.mset({b"j[o]*:item:a": 1, b"jo*:item:b": 1, b"j[o]*x:item:c": 1, b"jox:item:d": 1})
    assert ids(WorkQueue(connection, strange.name), strange.item_prefix) == [b"a"]


def test_an_id_that_ends_like_a_structure_is_an_item(
    queue: WorkQueue, keys: QueueKeys, foreign: Foreign
) -> None:
    foreign.waiting(b"mail:queue", b"queue")
    assert ids(queue, keys.item_prefix) == [b"mail:queue", b"queue"]


def test_an_id_may_belong_to_a_nested_queue(keys: QueueKeys) -> None:
    data, leases = (keys.item_prefix,), (keys.lease_prefix, keys.old_lease_prefix)
    assert owners_of(keys, b"x", data) == set()
    assert owners_of(keys, b"a:b", data) == set()
    assert owners_of(keys, b"item:x", data) == {b"jobs:item"}
    assert owners_of(keys, b"x:item:y", leases) == {b"jobs:lease:x", b"jobs:leased_by_session:x"}
    assert owners_of(keys, b"item:item:x", data) == {b"jobs:item", b"jobs:item:item"}
    assert owners_of(keys, b"queue", data) == {b"jobs:item"}
    assert owners_of(keys, b"\n:queue", data) == {b"jobs:item:\n"}


def test_ids_of_an_existing_nested_queue_are_excluded(
    queue: WorkQueue, keys: QueueKeys, raw: Redis, foreign: Foreign
) -> None:
    ids = [b"x", b"item:x", b"mail:item:x", b"queue"]
    prefixes = (keys.item_prefix,)
    # Data that end like a structure are no structure.
    foreign.waiting(b"queue", b"mail:queue")
    assert exclude_nested_queues(queue, ids, prefixes) == ids
    raw.zadd("jobs:item:mail:delayed", {b"x": 1})
    assert exclude_nested_queues(queue, ids, prefixes) == [b"x", b"item:x", b"queue"]
    raw.lpush("jobs:item:processing", b"x")
    assert exclude_nested_queues(queue, ids, prefixes) == [b"x"]
    assert exclude_nested_queues(queue, [], prefixes) == []
