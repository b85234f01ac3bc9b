"""The queues of a server, by the names of their keys."""

from redis import Redis

from rwq_cli.core import Connection, queue_names
from tests.conftest import Foreign, Interleaved
from tests.core.test_keys import STRANGE


def test_every_list_and_zset_gives_its_queue_away(connection: Connection, raw: Redis) -> None:
    raw.lpush(b"waiting:queue", b"1")
    raw.lpush(b"working:processing", b"1")
    raw.lpush(b"old:cleaning", b"1")
    raw.zadd(b"later:delayed", {b"1": 1})
    raw.zadd(b"dead:buried", {b"1": 1})
    for suffix in (b":queue", b":processing"):
        raw.lpush(b"once" + suffix, b"1")
    raw.zadd(b"once:delayed", {b"1": 1})
    assert queue_names(connection) == [b"dead", b"later", b"old", b"once", b"waiting", b"working"]


def test_queues_of_which_all_keys_have_the_wrong_type(
    connection: Connection, raw: Redis, foreign: Foreign
) -> None:
    foreign.waiting(b"1", b"queue", b"x:delayed")
    foreign.lease(b"x:buried")
    raw.hset(b"jobs:result:queue", "status", "completed")
    raw.set(b"text:queue", b"")
    raw.sadd(b"set:processing", b"1")
    raw.hset(b"hash:delayed", "field", "value")
    raw.xadd(b"stream:buried", {"field": "value"})
    raw.set(b"x:returns", b"")
    raw.set(b":queue", b"")
    raw.lpush(b"queue", b"1")
    raw.zadd(b"scores", {b"1": 1})
    foreign.data(b"orphan:queue")
    wrong = [b"hash", b"set", b"stream", b"text"]
    assert queue_names(connection, any_type=True) == sorted([b"jobs", *wrong])
    assert queue_names(connection) == [b"jobs"]


def test_names_can_be_any_bytes(connection: Connection, raw: Redis) -> None:
    names = [*STRANGE, b"a", b"a:item", b"a:item:x"]
    for name in names:
        Foreign(raw, name).waiting(b"1")
    assert queue_names(connection) == sorted(names)


def test_hundreds_among_thousands_of_keys(interleaved: Interleaved, raw: Redis) -> None:
    pipeline = raw.pipeline()
    for number in range(300):
        Foreign(pipeline, b"q%d" % number).waiting(b"1")
    pipeline.execute()
    raw.mset({b"jobs:item:%d" % number: b"" for number in range(3000)})
    assert queue_names(interleaved) == sorted(b"q%d" % number for number in range(300))
    # Never KEYS: the server would stand still.
    assert set(interleaved.calls) == {"SCAN"}
