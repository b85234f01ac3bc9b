"""What was chosen, or may be between two commands of its worker, is looked at again; each verb and
state: `test_contract.py`.
"""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from redis import Redis

from rwq_cli.core import Outcome, Selection, State, Status, WorkQueue
from rwq_cli.core.batches import FLUSH, Flush
from rwq_cli.core.errors import ConnectionLost
from rwq_cli.core.inspect.listing import choose
from rwq_cli.core.inspect.selection import comparison
from rwq_cli.core.items.complete import complete
from rwq_cli.core.items.move import move
from rwq_cli.core.items.schedule import bury, release
from rwq_cli.core.lua import TOKEN_BYTES
from rwq_cli.core.state.expected import Expected, token_of
from tests.conftest import HOLDER, QUEUE, FakeClock, Foreign, Interleaved
from tests.support import numbered


@pytest.mark.parametrize("change", ["length", "beginning", "end"])
def test_large_data_is_compared_by_length_and_ends(
    queue: WorkQueue, raw: Redis, foreign: Foreign, change: str
) -> None:
    foreign.waiting(b"x")
    data = b"b" + bytes(TOKEN_BYTES) + b"e"
    expected = Expected(tokens={b"x": token_of(data)})
    raw.set(b"jobs:item:x", data)
    (outcome,) = complete(queue, [b"x"], expected=expected, dry_run=True)
    assert outcome.status is Status.COMPLETED
    changed = {"length": data + b"e", "beginning": b"c" + data[1:], "end": data[:-1] + b"f"}
    raw.set(b"jobs:item:x", changed[change])
    assert [o.status for o in complete(queue, [b"x"], expected=expected)] == [Status.CHANGED]


@pytest.mark.parametrize("by", ["holder", "reason", "returns"])
def test_a_changed_ground_of_choice_leaves_the_item(
    queue: WorkQueue, raw: Redis, foreign: Foreign, by: str
) -> None:
    selection = {
        "holder": Selection(holder_glob=b"them"),
        "reason": Selection(reason_glob=b"this"),
        "returns": Selection(returns=comparison("=2")),
    }[by]
    foreign.leased(b"x")
    raw.hset(b"jobs:returns", b"x", 2)
    if by == "reason":
        queue.bury(b"x", reason=b"this", force=True)
    ids, expected = choose(queue, selection)
    assert ids == [b"x"]
    (outcome,) = complete(queue, ids, expected=expected, dry_run=True)
    assert outcome.status is Status.COMPLETED
    if by == "reason":
        queue.bury(b"x", reason=b"that")
    else:
        foreign.lease(b"x", holder=b"another")
        raw.hset(b"jobs:returns", b"x", 3)
    assert [o.status for o in complete(queue, ids, expected=expected)] == [Status.CHANGED]
    assert raw.get(b"jobs:item:x") == b"data of x"


@pytest.mark.parametrize("state", [State.WAITING, State.DUPLICATED])
def test_a_duplicate_is_what_one_entry_was_chosen_for(
    queue: WorkQueue, foreign: Foreign, state: State
) -> None:
    """A listing of main alone sees one of its entries."""
    foreign.waiting(b"x")
    foreign.abandoned(b"x")
    choice = choose(queue, Selection(frozenset({state})))
    leased = Expected(states=frozenset({State.LEASED}))
    assert [o.status for o in complete(queue, [b"x"], expected=leased)] == [Status.CHANGED]
    assert list(choice.ids) == [b"x"]
    outcomes = complete(queue, choice.ids, expected=choice.expected, dry_run=True)
    assert [o.status for o in outcomes] == [Status.COMPLETED]


Take = Callable[..., Iterator[Outcome]]
TAKES: dict[str, Take] = {
    "release": release,
    "release to the front": partial(release, front=True),
    "delay": partial(release, delay_s=60),
    "bury": bury,
    "move": lambda queue, ids, **options: move(queue, ids, b"other", None, **options),
}
each_take = pytest.mark.parametrize("take", TAKES.values(), ids=TAKES)
# Few are looked for by name, many in pages.
few_or_many = pytest.mark.parametrize("count", [1, 40])


@each_take
@few_or_many
def test_items_taken_in_the_grace_period_are_left(
    queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign, take: Take, count: int
) -> None:
    popped, added, again, dead = (
        numbered(count, name) for name in (b"popped %d", b"added %d", b"again %d", b"dead %d")
    )
    foreign.abandoned(*popped, *again, *dead)
    foreign.data(*added)

    def meanwhile() -> None:
        # The worker's lease comes, and the producer's push; others are completed and added anew
        # with other data: the same data in the same second cannot be told apart.
        foreign.lease(*popped, generations="old")
        raw.lpush(b"jobs:queue", *added)
        raw.mset({b"jobs:item:" + item_id: b"other data" for item_id in again})

    clock.during_sleep = meanwhile
    outcomes = take(queue, [*popped, *added, *again, *dead], grace_s=2.5)
    statuses = {outcome.item_id: outcome.status for outcome in outcomes}
    assert clock.slept_s == [2.5]
    assert {statuses[item_id] for item_id in popped} == {Status.NOT_OWNER}
    assert {statuses[item_id] for item_id in again} == {Status.CHANGED}
    failed = {Status.NOT_OWNER, Status.CHANGED, Status.MISSING}
    assert {statuses[item_id] for item_id in (*dead, *added)}.isdisjoint(failed)
    assert set(raw.lrange(b"jobs:processing", 0, -1)) == {*popped, *again}


@each_take
@few_or_many
def test_a_chosen_item_popped_since_gets_two_looks(
    queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign, take: Take, count: int
) -> None:
    popped, abandoned = numbered(count), numbered(count, b"old %d")
    foreign.waiting(*popped)
    foreign.abandoned(*abandoned)
    chosen = choose(queue, Selection(states=frozenset({State.WAITING, State.ABANDONED})))
    for _ in popped:
        raw.rpoplpush(b"jobs:queue", b"jobs:processing")
    clock.during_sleep = lambda: foreign.lease(*popped, generations="old")
    outcomes = take(queue, chosen.ids, expected=chosen.expected, grace_s=2.5)
    statuses = {outcome.item_id: outcome.status for outcome in outcomes}
    # The abandoned items were looked at twice when they were chosen.
    assert clock.slept_s == [1.0, 2.5]
    assert {statuses[item_id] for item_id in popped} == {Status.CHANGED}
    assert set(raw.lrange(b"jobs:processing", 0, -1)) == set(popped)
    assert Status.CHANGED not in {statuses[item_id] for item_id in abandoned}


@each_take
def test_leased_or_forced_items_are_looked_at_once(
    queue: WorkQueue, clock: FakeClock, foreign: Foreign, take: Take
) -> None:
    foreign.leased(b"mine", holder=HOLDER)
    foreign.leased(b"theirs")
    assert len(list(take(queue, [b"mine", b"theirs", b"gone"]))) == 3
    foreign.abandoned(b"abandoned")
    foreign.data(b"orphaned")
    statuses = [o.status for o in take(queue, [b"abandoned", b"orphaned"], force=True)]
    assert Status.NOT_OWNER not in statuses
    assert clock.slept_s == []


def test_a_stream_gets_second_looks_where_it_pauses(
    queue: WorkQueue, clock: FakeClock, foreign: Foreign
) -> None:
    foreign.abandoned(b"1", b"2", b"3")
    slept_at: list[list[float]] = []

    def stream() -> Iterator[bytes | Flush]:
        yield from (b"1", FLUSH)
        slept_at.append(list(clock.slept_s))
        yield from (b"2", b"3", b"gone")

    assert [o.item_id for o in release(queue, stream())] == [b"1", b"gone", b"2", b"3"]
    assert slept_at == [[1.0]]
    assert clock.slept_s == [1.0, 1.0]


def test_what_was_only_looked_at_is_not_acknowledged(
    interleaved: Interleaved, clock: FakeClock, foreign: Foreign
) -> None:
    foreign.abandoned(b"a", b"b", b"c")
    foreign.leased(b"mine", holder=HOLDER)

    def lose(name: str) -> None:
        if name == "put" and clock.slept_s:
            raise ConnectionLost("gone")

    interleaved.before = lose
    queue = WorkQueue(interleaved, QUEUE, holder=HOLDER, clock=clock)
    with pytest.raises(ConnectionLost) as caught:
        list(queue.release_many([b"a", b"mine", b"b", b"c"]))
    assert caught.value.acknowledged == 1
