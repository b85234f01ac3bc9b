"""Taking items out: removed or moved with every trace, and nothing else is touched."""

from collections.abc import Sequence

import pytest
from redis import Redis

from rwq_cli.core import Outcome, Server, Status, WorkQueue, connect
from rwq_cli.core.errors import ConnectionLost
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.items.journal import NoJournal
from rwq_cli.core.items.move import move as move_items, move_back
from rwq_cli.core.items.remove import remove as remove_items
from rwq_cli.core.state.snapshot import ItemSnapshot
from tests.conftest import Foreign, Interleaved, contents
from tests.export_lines import lines_of
from tests.servers import PrivateServer


class Journal:
    """Remembers what was written, and which of it was not taken.

    Attributes:
        in_doubt: What was written and not settled yet.
    """

    def __init__(self) -> None:
        self.written: list[ItemSnapshot] = []
        self.kept: list[bytes] = []
        self.results: list[Result] = []
        self.in_doubt: list[bytes] = []
        self._standing: dict[bytes, None] = {}

    def write(self, items: Sequence[ItemSnapshot], _replaced_by: Sequence[str] = ()) -> None:
        self.written += items
        self.in_doubt += [item.item_id for item in items]
        self._standing.update((item.item_id, None) for item in items)

    def write_results(self, results: Sequence[Result]) -> None:
        self.results += results

    def record_removed_except(self, kept: Sequence[bytes]) -> None:
        assert set(kept) <= set(self.in_doubt)
        self.in_doubt.clear()
        self.kept += kept
        for item_id in kept:
            del self._standing[item_id]

    @property
    def ids(self) -> list[bytes]:
        """The items that were written and not kept."""
        return list(self._standing)


@pytest.fixture
def journal() -> Journal:
    """Where the test looks for what was written down."""
    return Journal()


def many(raw: Redis, number: int, key: str = "jobs:queue") -> list[bytes]:
    """So many waiting items; returns their IDs, next first."""
    ids = [b"%06d" % at for at in range(number)]
    raw.mset({b"jobs:item:" + item_id: b"data of " + item_id for item_id in ids})
    raw.lpush(key, *ids)
    return ids


class TestRemove:
    @pytest.mark.parametrize("many_more", [False, True])
    def test_every_trace_of_an_item_is_removed(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, journal: Journal, many_more: bool
    ) -> None:
        """By name, and by pages."""
        foreign.waiting(b"w", b"stays")
        foreign.leased(b"l")
        foreign.abandoned(b"a")
        foreign.delayed(b"d", 4_000_000_000_000)
        foreign.buried(b"b")
        foreign.data(b"o")
        foreign.data(b"c")
        raw.lpush("jobs:cleaning", b"c")
        raw.lpush("jobs:queue", b"w")
        raw.lpush("jobs:processing", b"w")
        for item_id in (b"l", b"b"):
            raw.hset("jobs:returns", item_id, 2)
        ids = [b"w", b"l", b"a", b"d", b"b", b"o", b"c"]
        more = [b"gone%d" % number for number in range(100 * many_more)]
        outcomes = list(remove_items(queue, ids + more, journal))
        assert sorted(outcomes, key=lambda o: o.item_id) == sorted(
            [
                *(Outcome(item_id, Status.REMOVED) for item_id in ids),
                *(Outcome(item_id, Status.MISSING) for item_id in more),
            ],
            key=lambda o: o.item_id,
        )
        assert contents(raw) == {b"jobs:item:stays": b"data of stays", b"jobs:queue": [b"stays"]}
        assert {p.item_id: p.data for p in journal.written} == {i: b"data of " + i for i in ids}
        assert journal.kept == []

    @pytest.mark.parametrize("place", ["queue", "processing"])
    @pytest.mark.parametrize(
        "chosen",
        [slice(5, None, 7), slice(0, 5000), slice(4000, None), slice(3000, 8500), slice(None)],
        ids=["spread", "next", "last", "middle", "all"],
    )
    def test_many_leave_the_others_in_their_order(
        self, queue: WorkQueue, raw: Redis, journal: Journal, place: str, chosen: slice
    ) -> None:
        ids = many(raw, 9000, f"jobs:{place}")
        doomed = ids[chosen]
        outcomes = list(remove_items(queue, doomed[::-1], journal))
        assert outcomes == [Outcome(item_id, Status.REMOVED) for item_id in doomed]
        gone = set(doomed)
        left = [item_id for item_id in ids if item_id not in gone]
        listed = raw.lrange(f"jobs:{place}", 0, -1)
        if place == "processing":
            # It was rotated: its order means nothing.
            listed.sort(reverse=True)
        assert listed == left[::-1]
        assert raw.dbsize() == len(left) + bool(left)
        assert journal.ids == doomed

    def test_a_second_entry_is_not_a_ghost(self, queue: WorkQueue, raw: Redis) -> None:
        """Near the first, far from it, and in the other list."""
        ids = many(raw, 9000)
        raw.linsert("jobs:queue", "AFTER", ids[100], ids[120])
        raw.lpush("jobs:queue", ids[200])
        raw.lpush("jobs:processing", ids[300])
        list(remove_items(queue, ids[50:400], NoJournal()))
        assert raw.lrange("jobs:queue", 0, -1) == (ids[:50] + ids[400:])[::-1]
        assert raw.exists("jobs:processing") == 0

    @pytest.mark.parametrize("chosen", [slice(0, 6000, 3), slice(0, 6000)])
    def test_removing_beside_workers_and_producers_loses_nothing(
        self, interleaved: Interleaved, raw: Redis, journal: Journal, chosen: slice
    ) -> None:
        """Others pop, push, complete and give back before each call of ours."""
        ids = many(raw, 8000)
        doomed = set(ids[chosen])
        completed: set[bytes] = set()
        pushed: list[bytes] = []

        def others(_: str) -> None:
            if len(interleaved.calls) > 60:
                return
            for turn in range(20):
                item_id = raw.lmove("jobs:queue", "jobs:processing", "RIGHT", "LEFT")
                if item_id is None:
                    continue
                if turn % 3 == 0:
                    raw.lrem("jobs:processing", 0, item_id)
                    if raw.delete(b"jobs:item:" + item_id):
                        completed.add(item_id)
                elif turn % 3 == 1:
                    raw.lrem("jobs:processing", 0, item_id)
                    raw.lpush("jobs:queue", item_id)
                new = b"new%d" % len(pushed)
                pushed.append(new)
                raw.set(b"jobs:item:" + new, b"new")
                raw.lpush("jobs:queue", new)

        interleaved.before = others
        counts = dict.fromkeys(Status, 0)
        for outcome in remove_items(WorkQueue(interleaved, b"jobs"), sorted(doomed), journal):
            counts[outcome.status] += 1
        interleaved.before = None
        assert counts[Status.REMOVED] + counts[Status.MISSING] == len(doomed)
        assert counts[Status.REMOVED] == len(doomed - completed)
        assert set(journal.ids) == doomed - completed
        listed = raw.lrange("jobs:queue", 0, -1) + raw.lrange("jobs:processing", 0, -1)
        stored = {key[10:] for key in raw.scan_iter("jobs:item:*", count=10_000)}
        assert sorted(listed) == sorted(stored)
        assert stored == set(ids) - doomed - completed | set(pushed) - completed

    @pytest.mark.parametrize("place", ["queue", "processing"])
    def test_what_came_into_a_list_since_it_was_in_none(
        self, interleaved: Interleaved, raw: Redis, place: str
    ) -> None:
        """Many are sought, so nobody looks for it by name; it leaves no ghost all the same."""
        ids = many(raw, 100)
        foreign = Foreign(raw)
        foreign.data(b"o")

        def others(call: str) -> None:
            if call == "remove" and b"o" in interleaved.words:
                raw.lpush(f"jobs:{place}", b"o")

        interleaved.before = others
        outcomes = list(remove_items(WorkQueue(interleaved, b"jobs"), [*ids, b"o"], NoJournal()))
        assert Outcome(b"o", Status.REMOVED) in outcomes
        assert raw.keys() == []

    def test_an_item_changed_after_it_was_saved_stays(
        self, interleaved: Interleaved, raw: Redis, foreign: Foreign, journal: Journal
    ) -> None:
        foreign.waiting(b"a", b"b", b"c")

        def others(call: str) -> None:
            if call == "remove":
                raw.set("jobs:item:a", "another with this ID")
                raw.delete("jobs:item:b")

        interleaved.before = others
        outcomes = list(remove_items(WorkQueue(interleaved, b"jobs"), [b"a", b"b", b"c"], journal))
        assert outcomes == [
            Outcome(b"a", Status.CHANGED),
            Outcome(b"b", Status.MISSING),
            Outcome(b"c", Status.REMOVED),
        ]
        assert journal.ids == [b"c"]
        assert contents(raw) == {
            b"jobs:item:a": b"another with this ID",
            b"jobs:queue": [b"a"],
        }

    def test_nothing_is_removed_that_could_not_be_saved(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"a")
        before = contents(raw)

        class Full(NoJournal):
            def write(
                self, items: Sequence[ItemSnapshot], _replaced_by: Sequence[str] = ()
            ) -> None:
                assert items
                raise OSError(28, "No space left on device")

        with pytest.raises(OSError):
            list(remove_items(queue, [b"a"], Full()))
        assert contents(raw) == before

    def test_a_lost_reply_leaves_the_items_in_the_journal(
        self, interleaved: Interleaved, foreign: Foreign, journal: Journal
    ) -> None:
        """Nobody knows whether it was taken."""
        foreign.waiting(b"a")

        def cut(call: str) -> None:
            if call == "remove":
                raise ConnectionLost("lost")

        interleaved.before = cut
        with pytest.raises(ConnectionLost):
            list(remove_items(WorkQueue(interleaved, b"jobs"), [b"a"], journal))
        assert journal.ids == [b"a"]


class TestMove:
    @pytest.mark.parametrize("number", [5, 5000])
    def test_moved_items_keep_their_order_behind_the_existing_ones(
        self, queue: WorkQueue, raw: Redis, journal: Journal, number: int
    ) -> None:
        ids = many(raw, number)
        WorkQueue(queue.connection, b"other").add(b"first", b"there")
        moved = ids[1 : number - 1]
        outcomes = list(move_items(queue, moved, b"other", journal))
        assert outcomes == [Outcome(item_id, Status.MOVED) for item_id in moved]
        assert raw.lrange("other:queue", 0, -1) == [*reversed(moved), b"there"]
        assert raw.lrange("jobs:queue", 0, -1) == [ids[-1], ids[0]]
        assert raw.get(b"other:item:" + moved[0]) == b"data of " + moved[0]
        assert len(contents(raw)) == number + 1 + 2
        assert journal.ids == moved

    def test_leased_items_stay_without_force(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.leased(b"l", ttl_ms=None)
        foreign.buried(b"b")
        foreign.abandoned(b"a")
        raw.hset("jobs:returns", "a", 4)
        outcomes = list(move_items(queue, [b"l", b"b", b"a"], b"other", NoJournal()))
        assert outcomes == [
            Outcome(b"l", Status.NOT_OWNER, b"them"),
            Outcome(b"b", Status.NOT_OWNER, b"rwq-buried:broken"),
            Outcome(b"a", Status.MOVED),
        ]
        assert raw.hgetall("other:returns") == {b"a": b"4"}
        assert raw.exists("jobs:returns") == 0
        assert [
            o.status for o in move_items(queue, [b"l", b"b"], b"other", NoJournal(), force=True)
        ] == [Status.MOVED] * 2
        assert raw.lrange("other:queue", 0, -1) == [b"b", b"l", b"a"]
        assert sorted(contents(raw)) == [
            *(b"other:item:a", b"other:item:b", b"other:item:l", b"other:queue", b"other:returns")
        ]

    def test_an_id_that_is_there_already_stays_here(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, journal: Journal
    ) -> None:
        foreign.waiting(b"a", b"b")
        raw.set("other:item:a", "another")
        outcomes = list(move_items(queue, [b"a", b"b"], b"other", journal))
        assert outcomes == [Outcome(b"a", Status.CONFLICT), Outcome(b"b", Status.MOVED)]
        assert journal.ids == [b"b"]
        assert contents(raw) == {
            b"jobs:item:a": b"data of a",
            b"jobs:queue": [b"a"],
            b"other:item:a": b"another",
            b"other:item:b": b"data of b",
            b"other:queue": [b"b"],
        }

    def test_an_item_leased_after_it_was_saved(
        self, interleaved: Interleaved, raw: Redis, foreign: Foreign, journal: Journal
    ) -> None:
        foreign.waiting(b"a")
        interleaved.before = lambda call: call == "move" and foreign.lease(b"a", ttl_ms=None)
        outcomes = list(move_items(WorkQueue(interleaved, b"jobs"), [b"a"], b"other", journal))
        assert outcomes == [Outcome(b"a", Status.NOT_OWNER, b"them")]
        assert (journal.ids, raw.exists("other:item:a")) == ([], 0)

    def test_to_another_database(
        self, server: PrivateServer, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        other = WorkQueue(connect(Server(f"{server.url}?db=1")), b"jobs")
        foreign.waiting(b"a", b"b", b"there")
        foreign.leased(b"leased")
        other.add(b"another", b"there")
        wanted = [b"a", b"b", b"there", b"leased", b"gone"]
        for dry_run in (True, False):
            outcomes = move_items(queue, wanted, other, NoJournal(), dry_run=dry_run)
            assert [outcome.status for outcome in outcomes] == [
                *(Status.MOVED, Status.MOVED, Status.CONFLICT, Status.NOT_OWNER, Status.MISSING)
            ]
        assert [item.item_id for item in other.lease_many(9)] == [b"there", b"a", b"b"]
        assert raw.lrange("jobs:queue", 0, -1) == [b"there"]
        assert raw.lrange("jobs:processing", 0, -1) == [b"leased"]
        assert raw.exists("jobs:buried", "jobs:item:a", "jobs:lease:a") == 0

    def test_a_move_that_was_cut_goes_on_to_no_other_server(
        self, server: PrivateServer, queue: WorkQueue, foreign: Foreign
    ) -> None:
        first, second = (
            WorkQueue(connect(Server(f"{server.url}?db={db}")), b"jobs") for db in (1, 2)
        )
        foreign.waiting(b"a")
        where = first.connection.address.encode()
        queue.bury(b"a", reason=b"being moved to jobs on %b; the same rwq mv finishes it" % where)
        for other, is_there in ((second, False), (first, True)):
            finished = [Outcome(b"a", Status.FINISHED)] * is_there
            assert list(queue.move_many([], other)) == finished
            assert [item.item_id for item in other.lease_many(9)] == [b"a"] * is_there

    def test_a_copy_is_not_kicked_while_the_original_may_be_there(
        self, queue: WorkQueue, foreign: Foreign
    ) -> None:
        foreign.buried(b"a", b"being moved here from jobs on x; the same rwq mv finishes it")
        foreign.buried(b"b", b"being moved to jobs on x; the same rwq mv finishes it")
        statuses = [each.status for each in queue.kick_many([b"a", b"b"])]
        assert statuses == [Status.MOVING, Status.KICKED]


class TestMoveBack:
    def test_only_untouched_items_are_moved_back(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        journal = Journal()
        foreign.waiting(b"a", b"b", b"c", b"d", b"e")
        ids = [b"a", b"b", b"c", b"d", b"e"]
        list(move_items(queue, ids, b"other", journal))
        raw.set("other:item:b", "changed")
        raw.set("other:lease:c", "them")
        raw.delete("other:item:d")
        raw.lrem("other:queue", 0, "d")
        for dry_run in (True, False):
            outcomes = {
                o.item_id: o.status
                for o in move_back(
                    queue, lambda: lines_of(journal.written), b"other", dry_run=dry_run
                )
            }
            assert outcomes[b"b"] is Status.CHANGED
            assert outcomes[b"a"] is outcomes[b"e"] is Status.MOVED
            assert (outcomes[b"c"], outcomes[b"d"]) == (Status.NOT_OWNER, Status.MISSING)
        assert raw.lrange("jobs:queue", 0, -1) == [b"e", b"a"]
        assert raw.lrange("other:queue", 0, -1) == [b"c", b"b"]
        again = {
            o.item_id: o.status
            for o in move_back(queue, lambda: lines_of(journal.written), b"other")
        }
        assert again[b"a"] is again[b"e"] is Status.ALREADY_THERE
