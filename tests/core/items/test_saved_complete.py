"""Completing items that are saved first: what is deleted is what was written."""

import pytest
from redis import Redis

from rwq_cli.core import Status, WorkQueue
from rwq_cli.core.errors import ConnectionLost
from rwq_cli.core.inspect.selection import ITEMS
from rwq_cli.core.items.complete import complete as complete_items
from rwq_cli.core.items.results import ResultOptions
from rwq_cli.core.state.expected import Expected
from tests.conftest import Foreign, Interleaved
from tests.core.items.test_remove import Journal, many

# Few are looked for by name; many in stretches of main.
COUNTS = (5, 700)


def _options() -> ResultOptions:
    return ResultOptions(b"done")


@pytest.mark.parametrize("count", COUNTS)
def test_items_are_written_before_they_are_completed(
    interleaved: Interleaved, raw: Redis, count: int
) -> None:
    ids, journal = many(raw, count), Journal()
    deleted: list[int] = []
    interleaved.before = lambda name: (
        deleted.append(len(journal.written) + raw.dbsize()) if name == "complete" else None
    )
    queue = WorkQueue(interleaved, b"jobs")
    outcomes = list(complete_items(queue, ids, journal=journal, result_options=_options()))
    assert {outcome.status for outcome in outcomes} == {Status.COMPLETED}
    assert (journal.ids, journal.kept, journal.in_doubt) == (ids, [], [])
    assert deleted
    assert raw.llen("jobs:queue") == 0
    assert raw.dbsize() == count
    assert len({call for call in interleaved.calls if call == "remove"}) == 0


@pytest.mark.parametrize("count", COUNTS)
def test_data_that_changes_in_between_is_left(
    interleaved: Interleaved, raw: Redis, count: int
) -> None:
    ids, journal = many(raw, count), Journal()

    def change(name: str) -> None:
        if name == "complete":
            raw.set(b"jobs:item:" + ids[1], b"other")

    interleaved.before = change
    outcomes = list(complete_items(WorkQueue(interleaved, b"jobs"), ids, journal=journal))
    assert [o.item_id for o in outcomes if o.status is Status.CHANGED] == [ids[1]]
    assert journal.kept == [ids[1]]
    assert raw.lrange("jobs:queue", 0, -1) == [ids[1]]


def test_what_may_have_been_completed_stays_in_doubt(interleaved: Interleaved, raw: Redis) -> None:
    ids, journal = many(raw, 3), Journal()

    def lose(name: str) -> None:
        if name == "complete":
            raise ConnectionLost("lost")

    interleaved.before = lose
    with pytest.raises(ConnectionLost):
        list(complete_items(WorkQueue(interleaved, b"jobs"), ids, journal=journal))
    assert (sorted(journal.in_doubt), journal.kept) == (ids, [])


@pytest.mark.parametrize("count", COUNTS)
def test_items_that_workers_move_meanwhile_are_completed_where_they_are(
    interleaved: Interleaved, raw: Redis, count: int
) -> None:
    ids, journal = many(raw, count), Journal()

    def pop(name: str) -> None:
        if name == "complete":
            raw.rpoplpush("jobs:queue", "jobs:processing")

    interleaved.before = pop
    outcomes = list(complete_items(WorkQueue(interleaved, b"jobs"), ids, journal=journal))
    assert {outcome.status for outcome in outcomes} == {Status.COMPLETED}
    assert raw.keys() == []
    assert sorted(journal.ids) == ids


def test_conditions_are_checked_again(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    foreign.leased(b"l")
    journal = Journal()
    expected = Expected(states=ITEMS - {"leased"})
    outcomes = complete_items(queue, [b"a", b"l"], expected=expected, journal=journal)
    assert [outcome.status for outcome in outcomes] == [Status.COMPLETED, Status.CHANGED]
    assert (journal.ids, journal.kept) == ([b"a"], [b"l"])
