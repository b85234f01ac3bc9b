"""Verbs on many IDs in long lists, beside others that pop and push, and without memory."""

from collections.abc import Callable, Iterable

import pytest
from redis import Redis

from rwq_cli.core import Connection, Status, WorkQueue
from rwq_cli.core.batches import ProgressListener
from rwq_cli.core.items.complete import remove as remove_items
from rwq_cli.core.items.purge import purge as purge_queue
from tests.conftest import QUEUE, Foreign, Interleaved
from tests.support import many, numbered


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


@pytest.mark.parametrize("where", [b"jobs:queue", b"jobs:processing"])
def test_a_second_entry_leaves_no_ghost_also_if_it_comes_meanwhile(
    interleaved: Interleaved, raw: Redis, where: bytes
) -> None:
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


class Counting(ProgressListener):
    """Remembers the stages: what each is, its total, and how much was done."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int | None, int]] = []

    def begin(self, what: str, total: int | Callable[[], int] | None = None) -> None:
        self.stages.append((what, total() if callable(total) else total, 0))

    def advance(self, count: int) -> None:
        what, total, done = self.stages[-1]
        self.stages[-1] = what, total, done + count


@pytest.mark.parametrize("verb", ["purge", "remove", "complete"])
def test_progress_counts_each_item_once(queue: WorkQueue, foreign: Foreign, verb: str) -> None:
    ids = [*many(foreign.raw, 2500), *numbered(600, b"leased %d")]
    foreign.leased(*ids[2500:])
    queue.connection.progress = counting = Counting()
    if verb == "purge":
        outcomes = purge_queue(queue, None)
    elif verb == "remove":
        outcomes = remove_items(queue, ids, None)
    else:
        outcomes = queue.complete_many(ids)
    assert len(list(outcomes)) == 3100
    doing = [stage for stage in counting.stages if stage[0] in ("removing", "completing")]
    assert sum(done for _, _, done in doing) == 3100
    assert all(total is None or done <= total for _, total, done in doing)
