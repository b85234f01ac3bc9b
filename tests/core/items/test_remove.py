"""Taking items out: removed, moved or completed once they are saved; nothing else is touched."""

from collections.abc import Callable, Iterable

import pytest
from redis import Redis

from rwq_cli.core import Outcome, Server, State, Status, WorkQueue, connect
from rwq_cli.core.errors import ConnectionLost
from rwq_cli.core.items.complete import complete, remove
from rwq_cli.core.items.lease import lease_ids
from rwq_cli.core.items.move import move, move_back
from tests.conftest import Foreign, Interleaved, contents
from tests.servers import PrivateServer
from tests.support import Journal, lines_of, many

Saving = Callable[[WorkQueue, Iterable[bytes], Journal], Iterable[Outcome]]
SAVING: dict[str, tuple[Saving, Status]] = {
    "remove": (lambda queue, ids, journal: remove(queue, ids, journal), Status.REMOVED),
    "complete": (
        lambda queue, ids, journal: complete(queue, ids, journal=journal),
        Status.COMPLETED,
    ),
    "move": (lambda queue, ids, journal: move(queue, ids, b"other", journal), Status.MOVED),
}
each_verb = pytest.mark.parametrize("verb", SAVING)
# Few are looked for by name; many in stretches of main.
few_or_many = pytest.mark.parametrize("count", [5, 700])


@pytest.fixture
def journal() -> Journal:
    return Journal()


class TestSaved:
    @each_verb
    @few_or_many
    def test_items_are_written_before_they_are_taken_where_they_are_by_then(
        self, interleaved: Interleaved, raw: Redis, journal: Journal, verb: str, count: int
    ) -> None:
        ids = many(raw, count)
        sizes: list[int] = []

        def pop(name: str) -> None:
            if name in (verb, "complete"):
                sizes.append(len(journal.written))
                raw.rpoplpush("jobs:queue", "jobs:processing")

        interleaved.before = pop
        run, taken = SAVING[verb]
        outcomes = list(run(WorkQueue(interleaved, b"jobs"), ids, journal))
        done = [outcome.item_id for outcome in outcomes if outcome.status is taken]
        # Only a move leaves alone what a worker has just popped.
        assert sorted(done) == sorted(journal.ids)
        assert verb == "move" or len(done) == count
        assert sizes[0] > 0
        assert journal.in_doubt == []
        assert {item.item_id: item.data for item in journal.written} == {
            item_id: b"data of " + item_id for item_id in ids
        }

    @each_verb
    @few_or_many
    def test_what_is_another_item_by_then_stays(
        self, interleaved: Interleaved, raw: Redis, journal: Journal, verb: str, count: int
    ) -> None:
        ids = many(raw, count)

        def others(name: str) -> None:
            if name in (verb, "complete"):
                raw.set(b"jobs:item:" + ids[1], b"other")
                raw.delete(b"jobs:item:" + ids[2])

        interleaved.before = others
        run, taken = SAVING[verb]
        outcomes = run(WorkQueue(interleaved, b"jobs"), ids, journal)
        statuses = {outcome.item_id: outcome.status for outcome in outcomes}
        assert (statuses.pop(ids[1]), statuses.pop(ids[2])) == (Status.CHANGED, Status.MISSING)
        assert set(statuses.values()) == {taken}
        assert journal.kept == [ids[1], ids[2]]
        assert raw.lrange("jobs:queue", 0, -1) == [ids[1]]
        assert raw.get(b"jobs:item:" + ids[1]) == b"other"

    @each_verb
    def test_what_cannot_be_saved_stays_and_what_may_be_gone_is_in_doubt(
        self, interleaved: Interleaved, raw: Redis, journal: Journal, verb: str
    ) -> None:
        ids, before = many(raw, 3), contents(raw)
        run, _ = SAVING[verb]
        full = Journal()

        def is_full() -> None:
            raise OSError(28, "No space left on device")

        full.after_write = is_full
        with pytest.raises(OSError):
            list(run(WorkQueue(interleaved, b"jobs"), ids, full))
        assert contents(raw) == before

        def cut(name: str) -> None:
            if name in (verb, "complete"):
                raise ConnectionLost("lost")

        interleaved.before = cut
        with pytest.raises(ConnectionLost):
            list(run(WorkQueue(interleaved, b"jobs"), ids, journal))
        assert (sorted(journal.in_doubt), journal.kept) == (ids, [])


class TestMove:
    @few_or_many
    def test_moved_items_keep_their_order_behind_the_existing_ones_and_replace_none(
        self, queue: WorkQueue, raw: Redis, journal: Journal, count: int
    ) -> None:
        ids = many(raw, count)
        raw.hset("jobs:returns", ids[1], 4)
        WorkQueue(queue.connection, b"other").add(b"first", b"there")
        moved, taken = ids[1:-1], b"other:item:" + ids[-1]
        raw.set(taken, b"another item")
        outcomes = list(move(queue, ids[1:], b"other", journal))
        assert outcomes == [
            *(Outcome(item_id, Status.MOVED) for item_id in moved),
            Outcome(ids[-1], Status.CONFLICT),
        ]
        assert raw.get(taken) == b"another item"
        assert raw.lrange("other:queue", 0, -1) == [*reversed(moved), b"there"]
        assert raw.lrange("jobs:queue", 0, -1) == [ids[-1], ids[0]]
        assert raw.get(b"other:item:" + moved[0]) == b"data of " + moved[0]
        assert raw.hgetall("other:returns") == {ids[1]: b"4"}
        assert len(contents(raw)) == count + 1 + 4
        assert journal.ids == moved

    def test_to_another_database(
        self, server: PrivateServer, queue: WorkQueue, raw: Redis, foreign: Foreign
    ) -> None:
        other = WorkQueue(connect(Server(f"{server.url}?db=1")), b"jobs")
        foreign.waiting(b"a", b"b", b"there")
        foreign.leased(b"leased")
        other.add(b"another", b"there")
        wanted = [b"a", b"b", b"there", b"leased", b"gone"]
        for dry_run in (True, False):
            outcomes = move(queue, wanted, other, Journal(), dry_run=dry_run)
            assert [outcome.status for outcome in outcomes] == [
                *(Status.MOVED, Status.MOVED, Status.CONFLICT, Status.NOT_OWNER, Status.MISSING)
            ]
        assert [item.item_id for item in other.lease_many(9)] == [b"there", b"a", b"b"]
        assert raw.lrange("jobs:queue", 0, -1) == [b"there"]
        assert raw.lrange("jobs:processing", 0, -1) == [b"leased"]
        assert raw.exists("jobs:buried", "jobs:item:a", "jobs:lease:a") == 0

    def test_an_interrupt_waits_until_what_is_in_transit_has_arrived(
        self, interleaved: Interleaved, server: PrivateServer, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.waiting(b"a", b"b", b"c")
        other = WorkQueue(connect(Server(f"{server.url}?db=1")), b"jobs")
        stop, seen = interleaved.stop, []

        def interrupt(call: str) -> None:
            stop.requested |= call == "complete"

        interleaved.before = interrupt
        ids = [b"a", b"b", b"c"]
        moved = move(WorkQueue(interleaved, b"jobs"), ids, other, Journal())
        with pytest.raises(KeyboardInterrupt):
            seen.extend(each.status for each in moved)
        assert (stop.requested, seen) == (True, [Status.MOVED] * 3)
        assert [item.item_id for item in other.lease_many(9)] == ids
        assert raw.exists("jobs:buried", "jobs:queue") == 0

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

    def test_a_copy_of_an_item_that_was_kicked_here_is_removed(
        self, server: PrivateServer, queue: WorkQueue, foreign: Foreign
    ) -> None:
        other = WorkQueue(connect(Server(f"{server.url}?db=1")), b"jobs")
        foreign.waiting(b"a")
        other.add(b"data of a", b"a")
        where = queue.connection.address.encode()
        said = b"being moved here from jobs on %b; the same rwq mv finishes it" % where
        other.bury(b"a", reason=said)
        assert list(queue.move_many([], other)) == []
        assert (queue.state(b"a"), other.state(b"a")) == (State.WAITING, State.GONE)

    def test_a_copy_is_not_to_be_had_while_the_original_may_be_there(
        self, queue: WorkQueue, foreign: Foreign
    ) -> None:
        foreign.buried(b"a", b"being moved here from jobs on x; the same rwq mv finishes it")
        foreign.buried(b"b", b"being moved to jobs on x; the same rwq mv finishes it")
        ends = [queue.release(b"a"), queue.release(b"a", delay_s=9), queue.bury(b"a", reason=b"x")]
        assert [each.status for (each,) in ends] == [Status.MOVING] * 3
        ((item, is_leased),) = lease_ids(queue, [b"a"])
        assert (is_leased, item.state) == (False, State.BURIED)
        statuses = [each.status for each in queue.kick_many([b"a", b"b"])]
        assert statuses == [Status.MOVING, Status.KICKED]
        assert queue.release(b"a", force=True)[0].status is Status.RELEASED


def test_only_untouched_items_are_moved_back(
    queue: WorkQueue, raw: Redis, foreign: Foreign, journal: Journal
) -> None:
    ids = [b"a", b"b", b"c", b"d", b"e"]
    foreign.waiting(*ids)
    list(move(queue, ids, b"other", journal))
    raw.set("other:item:b", "changed")
    raw.set("other:lease:c", "them")
    raw.delete("other:item:d")
    raw.lrem("other:queue", 0, "d")

    def back(*, dry_run: bool) -> dict[bytes, Status]:
        lines = lines_of(journal.written)
        return {o.item_id: o.status for o in move_back(queue, lines, b"other", dry_run=dry_run)}

    for dry_run in (True, False):
        assert back(dry_run=dry_run) == {
            b"a": Status.MOVED,
            b"b": Status.CHANGED,
            b"c": Status.NOT_OWNER,
            b"d": Status.MISSING,
            b"e": Status.MOVED,
        }
    assert raw.lrange("jobs:queue", 0, -1) == [b"e", b"a"]
    assert raw.lrange("other:queue", 0, -1) == [b"c", b"b"]
    assert {back(dry_run=False)[item_id] for item_id in (b"a", b"e")} == {Status.ALREADY_THERE}
