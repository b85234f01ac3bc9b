"""Cleans: every state, and what others do to an ID between the two looks."""

from collections.abc import Collection
from itertools import product
from typing import Any

import pytest
from redis import Redis

from rwq_cli.core import CleanAction, Repair, State, WorkQueue
from rwq_cli.core.errors import WrongType
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.places import Places
from rwq_cli.core.items import repairs
from tests.broken_queues import pad
from tests.conftest import FakeClock, Foreign, Interleaved, contents
from tests.everything import everything
from tests.item_cases import ITEM_CASES
from tests.support import numbered

RETURNED = CleanAction(b"1", Repair.RETURNED, State.ABANDONED, "processing")
each_kind = pytest.mark.parametrize("kind", ["light", "deep"])

# What a clean does, by the names of `ITEM_CASES`; nothing to the others. A deep clean does both.
ACTIONS = {
    "light": {
        "due since a time that is none": "promoted from delayed: due",
        "due": "promoted from delayed: due",
        "due without a guard": "promoted from delayed: due",
        "gone and counted": "pruned from returns: ghost",
        "abandoned": "returned from processing: abandoned",
        "abandoned twice": "returned from processing: abandoned",
        "leased by rwq, ended by 0.3": "returned from processing: abandoned",
        "leased by rwq, ended by 0.1": "returned from processing: abandoned",
        "held by rwq, ended by 0.3": "returned from processing: abandoned",
        "abandoned and delayed": "returned from processing: abandoned",
        "in main and abandoned": "dropped from processing: duplicated",
        "abandoned behind half a guard": "returned from processing: abandoned",
        "ghost in processing": "dropped from processing: ghost",
        "ghost under a lease": "dropped from processing: ghost",
        "ghost everywhere": "dropped from processing: ghost",
    },
    "deep": {
        "ghost everywhere": "dropped from processing: ghost; pruned from delayed: ghost",
        "orphaned in a cleaner's hand": "returned: orphaned",
        "orphaned": "returned: orphaned",
        "in no list, its lease ended": "returned: orphaned",
        "ghost in main": "dropped from main: ghost",
        "thrice in main": "dropped from main: duplicated",
        "in main and leased": "dropped from main: duplicated",
        "waiting and in a cleaner's hand": "pruned from cleaning: waiting",
        "gone and in a cleaner's hand": "pruned from cleaning: ghost",
        "leased and delayed": "pruned from delayed: leased",
        "leased and delayed by one name": "pruned from delayed: leased",
        "waiting and delayed": "pruned from delayed: waiting",
        "leased and buried by one name": "pruned from buried: leased",
        "waiting and buried": "pruned from buried: waiting",
        "buried ghost": "pruned from buried: ghost",
    },
}
# What is due, or is counted though it is gone, is so at a first look.
LOOKED_AT_TWICE = [
    name
    for name, action in (ACTIONS["light"] | ACTIONS["deep"]).items()
    if not action.startswith(("promoted", "pruned from returns"))
]
# What becomes of them between the two looks.
HEALED = ("leased by 0.1", "leased by 0.3", "gone", "waiting", "delayed", "unlisted")
# A light clean finds it in processing only.
EVERYWHERE = "ghost everywhere"


def clean(queue: WorkQueue, kind: str, **options: Any) -> list[CleanAction]:
    return list(queue.deep_clean(**options) if kind == "deep" else queue.light_clean(**options))


def told(actions: list[CleanAction]) -> dict[str, str]:
    """By ID what was done and where, and the state that was the reason."""
    found: dict[str, list[str]] = {}
    for action in actions:
        where = f" from {action.where}" if action.where else ""
        line = f"{action.action}{where}: {action.state}"
        found.setdefault(action.item_id.decode(), []).append(line)
    return {item_id: "; ".join(lines) for item_id, lines in found.items()}


@each_kind
def test_a_clean_of_each_state(
    queue: WorkQueue, foreign: Foreign, clock: FakeClock, kind: str
) -> None:
    """A dry run: `test_dry_runs.py`."""
    expected = ACTIONS["light"] | (ACTIONS["deep"] if kind == "deep" else {})
    foreign.waiting(b"healthy")
    for name, case in ITEM_CASES.items():
        case.make(foreign, name.encode())
    assert told(clean(queue, kind, grace_s=7)) == expected
    assert clock.slept_s == [7]
    # Leases that never end and belong to nothing are the doctor's.
    cleaned = expected.keys() - ({EVERYWHERE} if kind == "light" else ())
    assert {name: queue.state(name.encode()) for name in ITEM_CASES} == {
        name: (case.after if name in cleaned else None) or case.state
        for name, case in ITEM_CASES.items()
    }
    assert queue.state(b"healthy") is State.WAITING
    clean(queue, kind)
    assert clean(queue, kind) == []


@pytest.mark.parametrize("structure", ["queue", "processing", "cleaning", "delayed"])
@each_kind
def test_a_structure_of_another_type_is_an_error(
    queue: WorkQueue, raw: Redis, foreign: Foreign, kind: str, structure: str
) -> None:
    foreign.abandoned(b"1")
    raw.set(f"jobs:{structure}", b"text")
    before = contents(raw)
    with pytest.raises(WrongType):
        clean(queue, kind)
    assert contents(raw) == before


class TestGrace:
    """What healed between the two looks, a second apart, is not touched."""

    @each_kind
    @pytest.mark.parametrize("dry_run", [False, True])
    def test_in_every_case(
        self,
        queue: WorkQueue,
        clock: FakeClock,
        raw: Redis,
        foreign: Foreign,
        kind: str,
        dry_run: bool,
    ) -> None:
        """Who has it leases, completes, pushes or adds it, or notes that it has it in hand."""
        after: list[Any] = []
        for name, healed in product(LOOKED_AT_TWICE, HEALED):
            raw.flushall()
            ITEM_CASES[name].make(foreign, b"1")

            def heal(healed: str = healed) -> None:
                raw.flushall()
                ITEM_CASES[healed].make(foreign, b"1")
                after.append(contents(raw))

            clock.slept_s.clear()
            clock.during_sleep = heal
            assert clean(queue, kind, dry_run=dry_run) == [], (name, healed)
            if clock.slept_s:
                assert clock.slept_s == [1.0]
                assert contents(raw) == after[-1]
            assert clock.slept_s or (kind == "light" and name not in ACTIONS["light"])

    def test_items_that_break_wait_for_the_next_clean(
        self, queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign
    ) -> None:
        foreign.abandoned(b"1")
        foreign.leased(b"2")
        foreign.waiting(b"3")

        def meanwhile() -> None:
            raw.delete(b"jobs:lease:2", b"jobs:leased_by_session:2")
            foreign.data(b"4")
            raw.lpush(b"jobs:queue", b"3", b"5")

        clock.during_sleep = meanwhile
        assert clean(queue, "deep") == [RETURNED]
        assert raw.lrange(b"jobs:queue", 0, -1) == [b"1", b"5", b"3", b"3"]
        assert raw.lrange(b"jobs:processing", 0, -1) == [b"2"]


@pytest.mark.parametrize("stale", [1, 31, 700])
def test_entries_that_a_cleaner_of_01_works_on_stay(
    queue: WorkQueue, raw: Redis, clock: FakeClock, stale: int
) -> None:
    """It can leave very many, and goes on adding and taking meanwhile."""
    in_hand = numbered(2500, b"in hand %d")
    raw.mset({b"jobs:item:" + item_id: b"" for item_id in in_hand})
    raw.lpush(b"jobs:queue", *in_hand)
    mixed = in_hand[:1500] + numbered(stale) + in_hand[1500:]
    raw.lpush(b"jobs:cleaning", *mixed[::2], *mixed[1::2])
    # Listed at the first look, in the cleaner's hand alone at the second.
    clock.during_sleep = lambda: raw.delete(b"jobs:queue")
    actions = clean(queue, "deep")
    pruned = [action.item_id for action in actions if action.where == "cleaning"]
    assert sorted(pruned) == numbered(stale)
    assert sorted(raw.lrange(b"jobs:cleaning", 0, -1)) == sorted(in_hand)


def test_thousands_of_stale_counts_are_pruned(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    """A light clean looks at some of them, so that it takes the same time beside any number."""
    ids = numbered(3000)
    raw.hset(b"jobs:returns", mapping=dict.fromkeys(ids, 2))
    foreign.waiting(ids[7], ids[-1])
    actions = clean(queue, "light")
    assert len(actions) > 400
    actions += clean(queue, "deep")
    assert {(action.action, action.where) for action in actions} == {(Repair.PRUNED, "returns")}
    assert len(actions) == len({action.item_id for action in actions}) == 2998
    assert raw.hgetall(b"jobs:returns") == {ids[7]: b"2", ids[-1]: b"2"}


@pytest.mark.parametrize(("waiting", "walks"), [(900, [900, 300, 300, 300]), (8100, [900, 900])])
def test_many_orphans_cost_walks_in_proportion(
    queue: WorkQueue,
    raw: Redis,
    monkeypatch: pytest.MonkeyPatch,
    waiting: int,
    walks: list[int],
) -> None:
    """For their facts, and for blocks of them, which long lists make larger."""
    ids, read, blocks = numbered(900 + waiting), Places.read, list[int]()
    raw.mset({b"jobs:item:" + item_id: b"x" for item_id in ids})
    raw.lpush(b"jobs:queue", *ids[900:])

    def counted(handle: Queue, block: Collection[bytes]) -> Places:
        blocks.append(len(block))
        return read(handle, block)

    monkeypatch.setattr(repairs, "BLOCK_IDS", 300)
    monkeypatch.setattr(Places, "read", counted)
    assert len(clean(queue, "deep")) == 900
    assert blocks == walks
    assert sorted(raw.lrange(b"jobs:queue", 0, -1)) == sorted(ids)


class TestBuryAfter:
    """What came back so often already is put away instead of being returned once more."""

    @pytest.mark.parametrize("is_orphaned", [False, True])
    @pytest.mark.parametrize("others", [0, 40])
    def test_items_above_the_limit_are_buried(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, is_orphaned: bool, others: int
    ) -> None:
        rest = [*numbered(others), b"below", b"new"]
        (foreign.data if is_orphaned else foreign.abandoned)(b"full", b"more", *rest)
        raw.hset(b"jobs:returns", mapping={b"below": 2, b"full": 3, b"more": 11})
        began_ms = queue.now_ms()
        actions = {a.item_id: a.action for a in clean(queue, "deep", bury_after=3)}
        buried = dict.fromkeys((b"full", b"more"), Repair.BURIED)
        assert actions == {**dict.fromkeys(rest, Repair.RETURNED), **buried}
        assert sorted(raw.lrange(b"jobs:queue", 0, -1)) == sorted(rest)
        assert raw.exists(b"jobs:processing") == 0
        kinds = (queue.keys.lease, queue.keys.old_lease)
        guards = [kind(item_id) for item_id in (b"full", b"more") for kind in kinds]
        reasons = [b"rwq-buried:returned %d times" % times for times in (3, 3, 11, 11)]
        assert raw.mget(guards) == reasons
        assert [raw.pttl(key) for key in guards] == [-1] * 4
        entries = raw.zrange(b"jobs:buried", 0, -1, withscores=True)
        assert {item_id for item_id, _ in entries} == {b"full", b"more"}
        assert all(began_ms <= at_ms < queue.now_ms() + 1 for _, at_ms in entries)
        returns = dict.fromkeys(rest, b"1") | {b"below": b"3", b"full": b"3", b"more": b"11"}
        assert raw.hgetall(b"jobs:returns") == returns
        assert clean(queue, "deep", bury_after=3) == []

    @each_kind
    @pytest.mark.parametrize("count", [9, 40])
    def test_buried_items_keep_their_order(
        self, queue: WorkQueue, raw: Redis, foreign: Foreign, kind: str, count: int
    ) -> None:
        """The longest leased is kicked first."""
        ids = numbered(count)[::-1]
        foreign.abandoned(*ids)
        clean(queue, kind, bury_after=0)
        buried = raw.zrange(b"jobs:buried", 0, -1, withscores=True)
        assert [item_id for item_id, _ in buried] == ids
        assert len({at_ms for _, at_ms in buried}) == count


all_cleaners = pytest.mark.parametrize("how", ["light", "deep", "doctor"])


def repair(queue: WorkQueue, how: str, *, dry_run: bool = False) -> int:
    """How many items a clean repairs, or the doctor fixes."""
    if how == "doctor":
        found = queue.diagnose(fix=True, dry_run=dry_run).findings
        return sum(finding.fixed for finding in found)
    return len(clean(queue, how, dry_run=dry_run))


@all_cleaners
@pytest.mark.parametrize(("others", "broken"), [(0, 1), (0, 100), (1400, 100)])
def test_an_abandoned_id_with_other_data_stays(
    queue: WorkQueue, clock: FakeClock, foreign: Foreign, how: str, others: int, broken: int
) -> None:
    raw, ids = foreign.raw, numbered(broken)
    foreign.abandoned(*ids)
    pad(raw, foreign.keys, others)
    after: list[object] = []

    def replace() -> None:
        # The entries stay where they are, as if they were alone in the list.
        raw.mset({b"jobs:item:" + item_id: b"data %d" % len(after) for item_id in ids})
        after.append(everything(raw))

    clock.during_sleep = replace
    assert repair(queue, how, dry_run=True) == 0
    assert everything(raw) == after[-1]
    assert repair(queue, how) == 0
    assert everything(raw) == after[-1]
    clock.during_sleep = None
    assert repair(queue, how) > 0


def test_given_up_a_reused_id_is_returned(
    queue: WorkQueue, clock: FakeClock, raw: Redis, foreign: Foreign
) -> None:
    """And popped, all in the grace period, as `docs/upstream.md` says: one complete wins."""
    foreign.abandoned(b"1")

    def come_again() -> None:
        queue.complete(b"1")
        foreign.waiting(b"1")
        raw.rpoplpush("jobs:queue", "jobs:processing")

    clock.during_sleep = come_again
    assert repair(queue, "light") == 1
    foreign.lease(b"1")
    assert (raw.lrange("jobs:queue", 0, -1), raw.lrange("jobs:processing", 0, -1)) == ([b"1"], [])
    assert [str(outcome.status) for outcome in queue.complete(b"1")] == ["completed"]


# The clean pushes up to 250 itself before it comes to that orphan.
@pytest.mark.parametrize(("others", "times"), [(200, 1), (600, 2)])
def test_given_up_an_orphan_pushed_by_two_waits_twice(
    interleaved: Interleaved,
    clock: FakeClock,
    raw: Redis,
    foreign: Foreign,
    others: int,
    times: int,
) -> None:
    """If more than 500 pushes hide that, and so many are sought that the lists were read; one
    complete wins, as `docs/upstream.md` says."""
    foreign.data(*numbered(300))
    queue = WorkQueue(interleaved, b"jobs", clock=clock)

    def push(name: str) -> None:
        if name == "repair" and not raw.exists("jobs:queue"):
            raw.lpush("jobs:queue", b"0000")
            foreign.waiting(*numbered(others, b"other-%d"))

    interleaved.before = push
    queue.deep_clean()
    assert raw.lrange("jobs:queue", 0, -1).count(b"0000") == times
    assert [str(queue.complete(b"0000")[0].status) for _ in range(2)] == ["completed", "missing"]
    queue.deep_clean()
    assert raw.llen("jobs:queue") == others + 299
