"""Dry runs of the verbs: they say what the verb then does, and change nothing."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis

from rwq_cli.core import Connection, Due, NewItem, Outcome, Status, WorkQueue
from rwq_cli.core.errors import WrongType
from rwq_cli.core.queue import lease_from, would_lease_from
from tests.conftest import HOLDER, Foreign, contents
from tests.core.inspect.test_survey import zoo

IDS = [
    *(b"w1", b"w2", b"l1", b"l old", b"held", b"a1", b"a2", b"both, leased", b"both, abandoned"),
    *(b"o1", b"o in hand", b"u new", b"u old", b"u held", b"d1", b"b1", b"g main", b"g processing"),
    *(b"g leased", b"stray", b"gone", b"mine", b"mine, new", b"", b"\x00\xff"),
    *(b"b listed", b"b unguarded", b"b half", b"b worked on", b"d half", b"d worked on"),
    *(b"b cleaning", b"g buried"),
]

LATER = Due(300_000, from_now=True)


def parked(foreign: Foreign) -> None:
    """Buried and delayed items to which something has happened since."""
    for item_id in (b"b listed", b"b unguarded", b"b half", b"b worked on", b"b cleaning"):
        foreign.buried(item_id)
    for item_id in (b"d half", b"d worked on"):
        foreign.delayed(item_id, 10**13)
    for item_id in (b"b unguarded", b"b listed"):
        foreign.raw.delete(foreign.keys.lease(item_id), foreign.keys.old_lease(item_id))
    for item_id in (b"b half", b"d half"):
        foreign.raw.delete(foreign.keys.lease(item_id))
    foreign.raw.lpush(foreign.keys.main, b"b listed")
    foreign.lease(b"b worked on", b"d worked on", generations="old")
    foreign.lease(b"b cleaning", holder=b"rwq-clean:x")


VERBS: dict[str, Callable[..., Iterator[Outcome]]] = {
    "add": lambda queue, **dry: queue.add_many([NewItem(i, b"") for i in IDS if i], **dry),
    "add unique": lambda queue, **dry: queue.add_many(
        [NewItem(i, b"") for i in IDS if i], unique=True, **dry
    ),
    "add later": lambda queue, **dry: queue.add_many(
        [NewItem(i, b"", LATER if at % 2 else None) for at, i in enumerate(IDS) if i], **dry
    ),
    "add later, unique": lambda queue, **dry: queue.add_many(
        [NewItem(i, b"", LATER if at % 2 else None) for at, i in enumerate(IDS) if i],
        unique=True,
        **dry,
    ),
    "add twice": lambda queue, **dry: queue.add_many([NewItem(b"new", b"")] * 3, **dry),
    "complete": lambda queue, **dry: queue.complete(IDS, **dry),
    "complete as owner": lambda queue, **dry: queue.complete(IDS, owner=HOLDER, **dry),
    "touch": lambda queue, **dry: queue.touch(IDS, **dry),
    "release": lambda queue, **dry: queue.release(IDS, **dry),
    "release with force": lambda queue, **dry: queue.release(IDS, force=True, **dry),
    "release to the front": lambda queue, **dry: queue.release(IDS, front=True, **dry),
    "delay": lambda queue, **dry: queue.release(IDS, delay_s=60, **dry),
    "delay with force": lambda queue, **dry: queue.release(IDS, delay_s=60, force=True, **dry),
    "bury": lambda queue, **dry: queue.bury(IDS, **dry),
    "bury with force": lambda queue, **dry: queue.bury(IDS, force=True, reason=b"x", **dry),
    "kick": lambda queue, **dry: queue.kick(IDS, **dry),
}


def told(outcomes: Iterator[Outcome]) -> list[tuple[bytes, Status, Any]]:
    """In one order; the holder where the outcome is about it."""
    return sorted(
        (o.item_id, o.status, o.holder if o.status is Status.NOT_OWNER else None) for o in outcomes
    )


@pytest.mark.parametrize("verb", VERBS)
def test_it_says_what_then_is_done(
    queue: WorkQueue, raw: Redis, foreign: Foreign, verb: str
) -> None:
    zoo(foreign)
    foreign.leased(b"mine", holder=HOLDER)
    foreign.leased(b"mine, new", holder=HOLDER, generations="new")
    parked(foreign)
    before = contents(raw)
    would = told(VERBS[verb](queue, dry_run=True))
    assert contents(raw) == before
    did = told(VERBS[verb](queue))
    assert contents(raw) != before
    assert would == did


@pytest.mark.parametrize("verb", ["complete", "touch", "release", "delay", "bury", "kick"])
def test_data_of_the_wrong_type_stop_both(
    queue: WorkQueue, raw: Redis, foreign: Foreign, verb: str
) -> None:
    foreign.leased(*IDS[:5])
    raw.delete(b"jobs:item:w2")
    raw.hset(b"jobs:item:w2", "field", "value")
    before = contents(raw)
    errors = []
    for options in ({"dry_run": True}, {}):
        with pytest.raises(WrongType) as caught:
            list(VERBS[verb](queue, **options))
        errors.append((caught.value.message, caught.value.hint))
    assert (
        errors
        == [
            (
                "jobs:item:w2 holds another type than the protocol says",
                "see what it is with the TYPE command, or name another queue",
            )
        ]
        * 2
    )
    assert contents(raw) == before


PUT_AWAY_AND_BACK: dict[str, tuple[Callable[..., Iterator[Outcome]], Status, bytes | None]] = {
    "bury": (lambda queue, ids, **dry: queue.bury(ids, **dry), Status.BURIED, None),
    "delay": (
        lambda queue, ids, **dry: queue.release(ids, delay_s=60, **dry),
        Status.DELAYED,
        None,
    ),
    "release": (
        lambda queue, ids, **dry: queue.release(ids, **dry),
        Status.ALREADY_WAITING,
        b"main",
    ),
    "release to the front": (
        lambda queue, ids, **dry: queue.release(ids, front=True, **dry),
        Status.RELEASED,
        b"main",
    ),
    "kick": (lambda queue, ids, **dry: queue.kick(ids, **dry), Status.NOT_BURIED, b"main"),
    "complete": (lambda queue, ids, **dry: queue.complete(ids, **dry), Status.COMPLETED, None),
}


@pytest.mark.parametrize("which", ["buried", "delayed"])
@pytest.mark.parametrize("verb", PUT_AWAY_AND_BACK)
def test_what_a_producer_added_anew_behind_its_guard_is_looked_for(
    queue: WorkQueue, raw: Redis, foreign: Foreign, verb: str, which: str
) -> None:
    """The add_item of upstream 0.1: SET and LPUSH, without a look."""
    run, status, where = PUT_AWAY_AND_BACK[verb]
    if which == "buried":
        foreign.buried(b"b")
    else:
        foreign.delayed(b"b", 10**13)
    foreign.waiting(b"b")
    before = contents(raw)
    would = [outcome.status for outcome in run(queue, [b"b"], dry_run=True)]
    assert contents(raw) == before
    assert [outcome.status for outcome in run(queue, [b"b"])] == would == [status]
    assert raw.lrange(foreign.keys.main, 0, -1) == ([b"b"] if where else [])


@pytest.mark.parametrize("verb", PUT_AWAY_AND_BACK)
def test_of_many_the_guard_is_believed_by_both(
    queue: WorkQueue, foreign: Foreign, verb: str
) -> None:
    run, _, _ = PUT_AWAY_AND_BACK[verb]
    ids = [b"%d" % number for number in range(40)]
    for item_id in ids:
        foreign.buried(item_id)
    foreign.waiting(*ids[:20])
    foreign.abandoned(*ids[30:])
    would = told(run(queue, ids, dry_run=True))
    assert told(run(queue, ids)) == would


def test_a_kick_takes_an_old_entry_off_processing(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    foreign.buried(b"b")
    foreign.abandoned(b"b")
    would = [outcome.status for outcome in queue.kick([b"b"], dry_run=True)]
    assert [outcome.status for outcome in queue.kick([b"b"])] == would == [Status.KICKED]
    assert raw.lrange(foreign.keys.main, 0, -1) == [b"b"]
    assert raw.lrange(foreign.keys.processing, 0, -1) == []


def test_more_than_one_batch(queue: WorkQueue, raw: Redis) -> None:
    ids = [b"%d" % number for number in range(2500)]
    pipeline = raw.pipeline()
    Foreign(pipeline).leased(*ids[:2000], holder=HOLDER)
    pipeline.execute()
    before = contents(raw)
    for verb in (queue.complete, queue.touch, queue.release, queue.bury, queue.kick):
        statuses = [outcome.status for outcome in verb(iter(ids), dry_run=True)]
        assert len(statuses) == 2500
        assert statuses.count(Status.MISSING) == 500
    items = (NewItem(item_id, b"") for item_id in ids)
    statuses = [outcome.status for outcome in queue.add_many(items, dry_run=True)]
    assert statuses == [Status.DUPLICATE] * 2000 + [Status.ADDED] * 500
    assert contents(raw) == before


class TestWouldLease:
    @pytest.fixture
    def queues(self, connection: Connection) -> list[WorkQueue]:
        return [WorkQueue(connection, name) for name in (b"high", b"low")]

    def test_of_the_first_that_has_any(self, queues: list[WorkQueue], raw: Redis) -> None:
        raw.lpush(b"high:queue", b"ghost")
        Foreign(raw, b"low").waiting(b"1", b"2", b"3")
        before = contents(raw)
        found = list(would_lease_from(queues, 2))
        assert [(item.queue, item.item_id, item.data) for item in found] == [
            (b"low", b"1", b"data of 1"),
            (b"low", b"2", b"data of 2"),
        ]
        assert contents(raw) == before

    def test_what_is_due_comes_last(self, queues: list[WorkQueue], raw: Redis) -> None:
        high = Foreign(raw, b"high")
        high.delayed(b"later", 9_999_999_999_999)
        assert list(would_lease_from(queues, 9)) == []
        high.delayed(b"d2", 2)
        high.delayed(b"d1", 1)
        high.waiting(b"w", b"d2")
        high.delayed(b"d3", 3)
        Foreign(raw, b"low").waiting(b"1")
        found = [item.item_id for item in would_lease_from(queues, 9)]
        assert found == [b"w", b"d2", b"d1", b"d3"]
        assert [item.item_id for item in would_lease_from(queues, 3)] == found[:3]

    @pytest.mark.parametrize("guards_left", [0, 1, 2])
    @pytest.mark.parametrize("returned", [False, True])
    def test_what_is_due_as_a_lease_would_take_it(
        self, queues: list[WorkQueue], raw: Redis, guards_left: int, returned: bool
    ) -> None:
        """Without a full guard it may have been returned, popped, and lost with its worker."""
        high = Foreign(raw, b"high")
        high.delayed(b"x", 1)
        for key in (high.keys.lease(b"x"), high.keys.old_lease(b"x"))[guards_left:]:
            raw.delete(key)
        if returned:
            raw.lpush(high.keys.processing, b"x")
        before = contents(raw)
        would = [(item.item_id, item.data) for item in would_lease_from(queues, 9)]
        assert contents(raw) == before
        leased = lease_from(queues, 9, lease_s=60)
        assert [(item.item_id, item.data) for item in leased] == would
        assert would == ([] if returned and guards_left < 2 else [(b"x", b"data of x")])

    def test_nothing(self, queues: list[WorkQueue]) -> None:
        assert list(would_lease_from(queues, 2)) == []

    def test_in_an_order_of_ones_own(self, queues: list[WorkQueue], raw: Redis) -> None:
        for name in (b"high", b"low"):
            Foreign(raw, name).waiting(b"1")
        (item,) = would_lease_from(queues, 2, shuffle=list.reverse)
        assert item.queue == b"low"
