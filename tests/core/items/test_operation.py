"""Verbs on many IDs in long lists, beside others that pop and push, and without memory."""

from collections.abc import Iterable

import pytest
from redis import Redis

from rwq_cli.core import Connection, Status, WorkQueue
from rwq_cli.core.state.located import Located
from rwq_cli.core.state.snapshots import Skipped, read_snapshots
from tests.conftest import QUEUE, Interleaved
from tests.support import many


def complete(connection: Connection, ids: Iterable[bytes]) -> set[Status]:
    outcomes = list(WorkQueue(connection, QUEUE).complete_many(ids))
    assert sorted(outcome.item_id for outcome in outcomes) == sorted(ids)
    return {outcome.status for outcome in outcomes}


@pytest.mark.parametrize("place", ["queue", "processing"])
@pytest.mark.parametrize(
    "chosen",
    [slice(0, None, 7), slice(5000), slice(4000, None), slice(3000, 8500), slice(None)],
    ids=["spread", "next", "last", "middle", "all"],
)
def test_many_leave_the_others_in_their_order(
    connection: Connection, raw: Redis, place: str, chosen: slice
) -> None:
    ids = many(raw, 9000, place)
    assert complete(connection, ids[chosen][::-1]) == {Status.COMPLETED}
    gone = set(ids[chosen])
    left = [item_id for item_id in ids if item_id not in gone]
    assert raw.lrange(f"jobs:{place}", 0, -1)[::-1] == left
    assert raw.dbsize() == len(left) + bool(left)


def test_more_entries_than_a_byte_can_count_all_go(connection: Connection, raw: Redis) -> None:
    ids = many(raw, 1000)
    raw.lpush("jobs:queue", *[ids[7]] * 300)
    assert complete(connection, ids) == {Status.COMPLETED}
    assert raw.keys() == []


@pytest.mark.parametrize("where", [b"jobs:queue", b"jobs:processing"])
def test_a_second_entry_leaves_no_ghost(interleaved: Interleaved, raw: Redis, where: bytes) -> None:
    ids = many(raw, 1000)
    raw.lpush(where, ids[3], b"other", ids[500])

    def meanwhile(name: str) -> None:
        if name == "complete" and not raw.exists(b"once"):
            raw.set(b"once", 1)
            raw.lpush(where, ids[7], ids[-1])

    interleaved.before = meanwhile
    assert complete(interleaved, ids) == {Status.COMPLETED}
    assert sorted(raw.keys()) == [where, b"once"]
    assert raw.lrange(where, 0, -1) == [b"other"]


def test_popped_places_read_not_from_the_other_end(queue: WorkQueue, raw: Redis) -> None:
    many(raw, 3000)
    # Seen when the list had a thousand entries more: they were before the left end of it now.
    call = Located([b"2999"], "windows", ([(3999,)], ()))
    with raw.monitor() as monitor:
        ((_, (item,)),) = read_snapshots(queue, [call], Skipped())
        raw.echo(b"read")
        sent = (each["command"].split() for each in monitor.listen())
        reads = [words for words in iter(lambda: next(sent), ["ECHO", "read"]) if "-" in words[-1]]
    assert item.item_id == b"2999"
    assert reads == []
