"""Taking items out: removed, moved or completed once they are saved; nothing else is touched."""

from collections.abc import Callable, Iterable

import pytest
from redis import Redis

from rwq_cli.core import Outcome, Status, WorkQueue
from rwq_cli.core.errors import ConnectionLost
from rwq_cli.core.items.complete import complete, remove
from rwq_cli.core.items.move import move, move_back
from tests.conftest import Foreign, Interleaved, contents
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
    def test_items_are_written_before_they_are_taken(
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
    def test_unsaved_stays_and_maybe_gone_is_in_doubt(
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
    def test_moved_items_queue_behind_and_replace_none(
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

    planned = back(dry_run=True)
    assert planned == {
        b"a": Status.MOVED,
        b"b": Status.CHANGED,
        b"c": Status.NOT_OWNER,
        b"d": Status.MISSING,
        b"e": Status.MOVED,
    }
    assert back(dry_run=False) == planned
    assert raw.lrange("jobs:queue", 0, -1) == [b"e", b"a"]
    assert raw.lrange("other:queue", 0, -1) == [b"c", b"b"]
    assert {back(dry_run=False)[item_id] for item_id in (b"a", b"e")} == {Status.ALREADY_THERE}
