"""Verbs on many IDs, and what they must not take for an item: `jobs` beside `jobs:item:mail`."""

from collections.abc import Callable, Iterable

import pytest
from redis import Redis

from rwq_cli.core import Connection, NewItem, Status, WorkQueue
from rwq_cli.core.items.journal import NoJournal
from rwq_cli.core.items.purge import purge as purge_queue
from rwq_cli.core.items.remove import remove as remove_items
from rwq_cli.core.progress import ProgressListener
from tests.conftest import QUEUE, Foreign, Interleaved, no_call_is_long
from tests.servers import PrivateServer


def numbered(count: int) -> list[bytes]:
    return [b"%05d" % number for number in range(count)]


class TestManyWaitingItems:
    """They are completed without a pass over the list for each, and the rest keeps its order."""

    def fill(self, raw: Redis, ids: list[bytes]) -> None:
        raw.lpush(b"jobs:queue", *ids)
        raw.mset({b"jobs:item:" + item_id: b"data" for item_id in ids})

    def complete(self, connection: Connection, ids: Iterable[bytes]) -> dict[Status, list[bytes]]:
        queue = WorkQueue(connection, QUEUE)
        by_status: dict[Status, list[bytes]] = {}
        for outcome in queue.complete_many(ids):
            by_status.setdefault(outcome.status, []).append(outcome.item_id)
        return by_status

    @pytest.mark.parametrize("step", [1, 2, 7, 200])
    @pytest.mark.parametrize("first", [0, 5000])
    def test_completing_some_waiting_items_leaves_the_others_in_order(
        self, connection: Connection, raw: Redis, step: int, first: int
    ) -> None:
        ids = numbered(13_000)
        self.fill(raw, ids)
        chosen = ids[first::step]
        done = self.complete(connection, reversed(chosen))
        assert {status: sorted(ids) for status, ids in done.items()} == {Status.COMPLETED: chosen}
        taken = set(chosen)
        rest = [item_id for item_id in ids if item_id not in taken]
        assert raw.lrange(b"jobs:queue", 0, -1)[::-1] == rest
        assert len(raw.keys(b"jobs:item:*")) == len(rest)
        assert raw.exists(b"jobs:processing") == 0

    @pytest.mark.parametrize("where", [b"jobs:queue", b"jobs:processing"])
    def test_a_second_entry_does_not_stay_behind(
        self, connection: Connection, raw: Redis, where: bytes
    ) -> None:
        ids = numbered(100)
        self.fill(raw, ids)
        raw.lpush(where, b"00003", b"other", b"00050")
        assert sorted(self.complete(connection, ids)[Status.COMPLETED]) == ids
        assert raw.keys() == [where]
        assert raw.lrange(where, 0, -1) == [b"other"]

    @pytest.mark.parametrize("act", ["pops", "pushes", "pushes to the front", "completes"])
    def test_items_are_completed_while_others_pop_and_push(
        self, interleaved: Interleaved, raw: Redis, act: str
    ) -> None:
        ids = numbered(6000)
        self.fill(raw, ids)
        chosen, others = ids[::2], ids[1::2]
        popped: list[bytes] = []
        pushed = 0

        def meanwhile(name: str) -> None:
            nonlocal pushed
            # Whoever pushed for ever would be followed for ever.
            if name not in ("LRANGE", "complete") or pushed >= 1200:
                return
            for _ in range(40):
                pushed += 1
                if act == "pops":
                    entry = raw.rpop(b"jobs:queue")
                    popped.extend([entry] if entry else [])
                elif act == "completes":
                    raw.delete(b"jobs:item:" + chosen[-pushed])
                    raw.lrem(b"jobs:queue", 0, chosen[-pushed])
                else:
                    new = b"new %d" % pushed
                    raw.set(b"jobs:item:" + new, b"")
                    (raw.lpush if act == "pushes" else raw.rpush)(b"jobs:queue", new)

        interleaved.before = meanwhile
        done = self.complete(interleaved, chosen)
        assert sorted(item_id for ids in done.values() for item_id in ids) == chosen
        left = raw.lrange(b"jobs:queue", 0, -1)[::-1]
        assert raw.exists(*(b"jobs:item:" + item_id for item_id in chosen)) == 0
        assert [entry for entry in left if not entry.startswith(b"new ")] == [
            item_id for item_id in others if item_id not in popped
        ]
        new = [b"new %d" % number for number in range(1, pushed + 1)]
        if act == "pushes":
            assert left[-pushed:] == new
        elif act == "pushes to the front":
            assert left[:pushed] == new[::-1]
        else:
            assert set(left) <= set(others)

    @pytest.mark.parametrize("where", [b"jobs:queue", b"jobs:processing"])
    def test_an_id_pushed_elsewhere_meanwhile_leaves_no_ghost(
        self, interleaved: Interleaved, raw: Redis, where: bytes
    ) -> None:
        ids = numbered(1000)
        self.fill(raw, ids)

        def meanwhile(name: str) -> None:
            if name == "complete" and not raw.exists(b"once"):
                raw.set(b"once", 1)
                raw.lpush(where, b"00003", b"00999")

        interleaved.before = meanwhile
        assert sorted(self.complete(interleaved, ids)[Status.COMPLETED]) == ids
        assert raw.keys() == [b"once"]


def test_completing_makes_room_on_a_server_that_has_none(server: PrivateServer) -> None:
    """Many that wait, in stretches; marking them in the list is what would need memory first."""
    ids = [b"%04d" % number for number in range(2000)]
    with server.client() as raw:
        raw.flushall()
        raw.mset({b"jobs:item:" + item_id: b"x" * 100 for item_id in ids})
        raw.lpush(b"jobs:queue", *ids)
        raw.config_set("maxmemory", 1)
        try:
            queue = WorkQueue(Connection(raw), b"jobs")
            done = [outcome.status for outcome in queue.complete_many(ids[::2])]
            assert done == [Status.COMPLETED] * 1000
            removed = list(remove_items(queue, ids[1::2][:500], NoJournal()))
            assert len(removed) == 500
        finally:
            raw.config_set("maxmemory", 0)
        assert raw.lrange(b"jobs:queue", 0, -1) == ids[1001::2][::-1]


@pytest.mark.parametrize("place", [b"jobs:queue", b"jobs:processing"])
class TestEntriesOfOldCleaners:
    """A pass over its list for each ID is made only where that list is short."""

    def fill(self, raw: Redis, place: bytes, others: int) -> list[bytes]:
        ids = numbered(1000)
        raw.lpush(place, *ids)
        raw.mset({b"jobs:item:" + item_id: b"data" for item_id in ids})
        raw.lpush(b"jobs:cleaning", *ids, *(b"other %d" % number for number in range(others)))
        return ids

    def test_ids_are_removed_from_a_long_cleaning_list_in_short_calls(
        self, interleaved: Interleaved, raw: Redis, place: bytes
    ) -> None:
        queue = WorkQueue(interleaved, QUEUE)
        ids = self.fill(raw, place, 300_000)
        with no_call_is_long(interleaved, raw, 301_000):
            outcomes = list(queue.complete_many(ids))
        assert [outcome.status for outcome in outcomes] == [Status.COMPLETED] * 1000
        assert raw.keys() == [b"jobs:cleaning"]
        # Of one, it is worth it.
        raw.set(b"jobs:item:other 7", b"data")
        raw.lpush(place, b"other 7")
        list(queue.complete_many([b"other 7"]))
        assert raw.llen(b"jobs:cleaning") == 300_999


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
    waiting = [b"w%d" % number for number in range(2500)]
    leased = [b"l%d" % number for number in range(600)]
    list(queue.add_many([NewItem(item_id, b"x") for item_id in waiting]))
    foreign.leased(*leased)
    queue.connection.progress = counting = Counting()
    if verb == "purge":
        outcomes = purge_queue(queue, NoJournal())
    elif verb == "remove":
        outcomes = remove_items(queue, [*waiting, *leased], NoJournal())
    else:
        outcomes = queue.complete_many([*waiting, *leased])
    assert len(list(outcomes)) == 3100
    doing = [stage for stage in counting.stages if stage[0] in ("removing", "completing")]
    assert sum(done for _, _, done in doing) == 3100
    assert all(total is None or done <= total for _, total, done in doing)
