"""What the keys of a queue are, by their prefixes and types."""

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.keyspace import (
    ids_of,
    may_be_in_nested_queue,
    nested_names,
    wrong_types,
)
from rwq_cli.core.inspect.results import invalid_results
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


@pytest.mark.parametrize("prefix", ["item", "lease", "leased_by_session"])
def test_items_and_leases_are_strings(
    queue: WorkQueue, raw: Redis, foreign: Foreign, prefix: str
) -> None:
    foreign.leased(b"fine")
    kinds = ["hash", "list", "set", "zset", "stream"]
    for kind in (*kinds, "string"):
        make(raw, f"jobs:{prefix}:{kind}", kind)
    keys = [*raw.keys(f"jobs:{prefix}:*"), b"jobs:item:none"]
    assert dict(wrong_types(queue, keys)) == {
        f"jobs:{prefix}:{kind}".encode(): kind for kind in kinds
    }


def test_no_result_in_the_place_of_one(queue: WorkQueue, raw: Redis) -> None:
    """But nothing that may be another queue's."""
    raw.hset("jobs:result:fine", mapping={"status": "completed", "completed_ms": 5})
    raw.hset("jobs:result:half", "status", "completed")
    for kind in ("hash", "list", "string"):
        make(raw, f"jobs:result:{kind}", kind)
    raw.set("jobs:result:x:item:1", "data")
    ids = ids_of(raw.keys(), b"jobs:result:")
    assert {key for key, _ in invalid_results(queue, ids)} == {
        *(b"jobs:result:hash", b"jobs:result:half", b"jobs:result:list", b"jobs:result:string")
    }


@pytest.mark.parametrize("suffix", STRUCTURE_TYPES)
@pytest.mark.parametrize("kind", ["list", "zset", "hash", "string"])
def test_one_structure_of_the_right_type_makes_a_nested_queue(
    queue: WorkQueue, raw: Redis, suffix: bytes, kind: str
) -> None:
    key = b"jobs:item:x" + suffix
    make(raw, key.decode(), kind)
    is_one = STRUCTURE_TYPES[suffix] == kind
    assert nested_names(queue, [key, b"jobs:item:1"]) == (b"jobs:item:x",) * is_one


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
