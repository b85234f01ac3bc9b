"""All that is known of an ID, and that looking changes nothing, not even an idle time."""

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from rwq_cli.core import Item, Lease, NewItem, Selection, Source, State, WorkQueue
from rwq_cli.core.inspect.report import (
    describe as describe_items,
    inspect_items,
)
from rwq_cli.core.state.rules import Facts
from tests.conftest import QUEUE, AsUser, Foreign, supports_no_touch
from tests.core.inspect.test_survey import arrange_all
from tests.core.inspect.ways import WAYS, force
from tests.servers import PrivateServer

FAR_MS = 10**13

NOTHING = Facts(item_id=b"1", has_data=False)
DATA = NOTHING._replace(has_data=True)


def facts_of(queue: WorkQueue, item_id: bytes = b"1") -> Facts:
    """The facts, their own instant checked and left out."""
    before_ms = queue.now_ms()
    (report,) = inspect_items(queue, [item_id])
    assert before_ms <= report.facts.now_ms <= queue.now_ms()
    return report.facts._replace(now_ms=0)


def both(holder: bytes, ttl_ms: int | None = None) -> dict[str, Lease]:
    """A lease under both names."""
    return {"new_lease": Lease(holder, ttl_ms), "old_lease": Lease(holder, ttl_ms)}


ARRANGED: dict[str, tuple[Callable[[Foreign], Any], Facts, State]] = {
    "gone": (lambda _: None, NOTHING, State.GONE),
    "waiting": (lambda f: f.waiting(b"1"), DATA._replace(in_main=1), State.WAITING),
    "held": (
        lambda f: f.leased(b"1", ttl_ms=None),
        DATA._replace(in_processing=1, **both(b"them")),
        State.HELD,
    ),
    "abandoned": (
        lambda f: f.abandoned(b"1", b"1"),
        DATA._replace(in_processing=2),
        State.ABANDONED,
    ),
    "orphaned": (lambda f: f.data(b"1"), DATA, State.ORPHANED),
    "in an old cleaner's hand": (
        lambda f: (f.data(b"1"), f.raw.lpush(f.keys.cleaning, b"1", b"x", b"1")),
        DATA._replace(in_cleaning=2),
        State.ORPHANED,
    ),
    "due": (
        lambda f: (f.data(b"1"), f.raw.zadd(f.keys.delayed, {b"1": 1_600_000_000_123})),
        DATA._replace(due_ms=1_600_000_000_123),
        State.DUE,
    ),
    "buried": (
        lambda f: f.buried(b"1"),
        DATA._replace(buried_ms=1_700_000_000_000, **both(b"rwq-buried:broken")),
        State.BURIED,
    ),
    "duplicated": (
        lambda f: (f.waiting(b"1", b"x", b"1"), f.abandoned(b"1")),
        DATA._replace(in_main=2, in_processing=1),
        State.DUPLICATED,
    ),
    "ghost": (
        lambda f: f.raw.lpush(f.keys.processing, b"1"),
        NOTHING._replace(in_processing=1),
        State.GHOST,
    ),
    "stray lease": (
        lambda f: f.lease(b"1", ttl_ms=None),
        NOTHING._replace(**both(b"them")),
        State.STRAY_LEASE,
    ),
    "returned before": (
        lambda f: (f.waiting(b"1"), f.raw.hset(f.keys.returns, b"1", 3)),
        DATA._replace(in_main=1, returns=3),
        State.WAITING,
    ),
}


@pytest.mark.parametrize("generations", ["old", "new", "both"])
def test_the_facts_of_a_lease(queue: WorkQueue, foreign: Foreign, generations: str) -> None:
    foreign.leased(b"1", ttl_ms=60_000, generations=generations)
    (report,) = inspect_items(queue, [b"1"])
    lease = report.facts.lease
    assert lease is not None
    assert lease.ttl_ms is not None
    assert 30_000 < lease.ttl_ms <= 60_000
    assert lease.holder == b"them"
    assert (
        report.lease_keys
        == {
            "new": (b"jobs:lease:1",),
            "old": (b"jobs:leased_by_session:1",),
            "both": (b"jobs:lease:1", b"jobs:leased_by_session:1"),
        }[generations]
    )
    assert report.facts.state is State.LEASED


@pytest.mark.parametrize("way", WAYS)
def test_positions_count_the_items_ahead(
    queue: WorkQueue, foreign: Foreign, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    force(way, monkeypatch)
    foreign.waiting(b"0", b"1", b"2", b"1", b"4")
    foreign.leased(b"leased")
    ids = [b"0", b"1", b"2", b"4", b"leased", b"gone"]
    reports = list(inspect_items(queue, iter(ids)))
    # Of two places the one that is leased first counts.
    assert [(report.facts.item_id, report.position) for report in reports] == [
        (b"0", 0),
        (b"1", 1),
        (b"2", 2),
        (b"4", 4),
        (b"leased", None),
        (b"gone", None),
    ]


def test_the_item_of_a_report(queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
    foreign.buried(b"1", b"exit 3: no such file")
    raw.hset(b"jobs:returns", b"1", 4)
    (report,) = inspect_items(queue, [b"1"])
    sizes = supports_no_touch(raw)
    expected = Item(
        queue=b"jobs",
        item_id=b"1",
        state=State.BURIED,
        payload_bytes=9 if sizes else None,
        preview=b"data of 1" if sizes else None,
        lease=Lease(b"rwq-buried:exit 3: no such file", None),
        buried_ms=1_700_000_000_000,
        reason=b"exit 3: no such file",
        returns=4,
    )
    ((item,), _) = describe_items(queue, [report])
    assert item.idle_s in (0, 1)
    assert item._replace(idle_s=None) == expected
    ((item,), _) = describe_items(queue, [report], data=True)
    assert item._replace(idle_s=None) == expected._replace(
        data=b"data of 1", payload_bytes=9, preview=b"data of 1"
    )


def test_a_server_that_may_not_say_how_old_an_item_is(
    as_user: AsUser, server: PrivateServer
) -> None:
    """What cannot be read is shown as unknown, and the rest is shown."""
    Foreign(server.client()).waiting(b"1")
    queue = WorkQueue(as_user("+@all", "-object"), QUEUE)
    ((item,), _) = describe_items(queue, inspect_items(queue, [b"1"]))
    assert (item.idle_s, item.state) == (None, State.WAITING)


def test_looking_changes_nothing_not_even_an_idle_time(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    if not supports_no_touch(raw):
        pytest.skip("this server has no CLIENT NO-TOUCH (Redis before 7.2)")
    arrange_all(foreign)
    raw.hset(b"jobs:item:strange", "field", "value")
    raw.lpush(b"jobs:queue", b"strange")
    # Idle times are whole seconds; ours must not look at the keys either.
    raw.execute_command("CLIENT", "NO-TOUCH", "ON")

    def everything() -> dict[bytes, Any]:
        return {key: (raw.dump(key), raw.pttl(key) > 0) for key in raw.scan_iter()}

    for key in sorted(raw.keys()):
        value = raw.dump(key)
        assert value is not None
        raw.restore(key, max(0, raw.pttl(key)), value, replace=True, idletime=2)
    before = everything()
    assert min(raw.object("IDLETIME", key) for key in before) >= 2

    both = Source(main=True, processing=True)
    everything_there_is = [b"w1", b"w3", b"l1", b"a1", b"o1", b"d1", b"b1", b"g main"]
    queue.lengths()
    list(queue.light_clean(dry_run=True))
    list(queue.deep_clean(dry_run=True))
    list(queue.add_many([NewItem(b"w1", b"x"), NewItem(b"new", b"x")], dry_run=True))
    for verb in (queue.complete_many, queue.touch_many, queue.release_many):
        list(verb(everything_there_is, dry_run=True))
    queue.counts(deep=True)
    list(queue.items(both))
    list(queue.items(both, data=True, tail=True))
    list(queue.items(both, Selection(older_than_s=0)))
    list(queue.leases())
    list(queue.leases(data=True))
    describe_items(queue, inspect_items(queue, everything_there_is), data=True)

    assert everything() == before
    # A waiting item's idle time is its age, which nothing else tells; that of a list is not.
    idle_s = {key: raw.object("IDLETIME", key) for key in before if b":item:" in key}
    assert len(idle_s) > 15
    assert min(idle_s.values()) >= 2, idle_s
    raw.execute_command("CLIENT", "NO-TOUCH", "OFF")


@pytest.mark.needs("no-touch")
def test_the_idle_time_is_the_age(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"1")
    foreign.unused_for(b"1", 7)
    for _ in range(2):
        ((described,), _) = describe_items(queue, inspect_items(queue, [b"1"]), data=True)
        (listed,) = queue.items(Source(main=True))
        assert (described.idle_s in (7, 8), listed.idle_s in (7, 8)) == (True, True)


def test_each_lease_key_of_a_report(queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
    foreign.leased(b"1", holder=b"new one", ttl_ms=None, generations="new")
    raw.lpush(b"jobs:leased_by_session:1", b"text")
    (report,) = inspect_items(queue, [b"1"])
    assert report.lease_keys == (b"jobs:lease:1", b"jobs:leased_by_session:1")
    assert report.leases == ((b"jobs:lease:1", Lease(b"new one", None)),)
    assert report.facts.wrong_types == {b"jobs:leased_by_session:1": "list"}
