"""What is known of an ID: the same by each way of looking, also while items move."""

from time import process_time

import pytest
from redis import Redis

from rwq_cli.core import Lease, Selection, Source, WorkQueue
from rwq_cli.core.batches import BUDGET
from rwq_cli.core.inspect.listing import leases
from rwq_cli.core.inspect.lookup import (
    Forecast,
    ItemReport,
    describe as describe_items,
    facts_of,
    forecast,
    inspect_items,
    look_up,
)
from rwq_cli.core.inspect.places import Places
from rwq_cli.core.keys import QueueKeys
from tests.conftest import QUEUE, FakeClock, Foreign, Interleaved
from tests.everything import everything
from tests.item_cases import ITEM_CASES
from tests.support import numbered

# None of them is there. With so many more, IDs are not looked up in one call.
OTHERS = numbered(BUDGET.items, b"other %d")


def comparable(found: ItemReport) -> ItemReport:
    """Without what time changes."""

    def lasting(lease):
        return lease and lease._replace(ttl_ms=lease.ttl_ms and round(lease.ttl_ms, -7))

    facts = found.facts._replace(
        now_ms=0,
        new_lease=lasting(found.facts.new_lease),
        old_lease=lasting(found.facts.old_lease),
    )
    return ItemReport(facts, list(found.main_places), list(found.processing_places))


def test_few_and_many_are_found_in_the_same_places(
    interleaved: Interleaved, raw: Redis, foreign: Foreign
) -> None:
    """By a script, by a walk, and by name; places are counted from the right."""
    foreign.waiting(b"0", b"1", b"2", b"1")
    foreign.leased(b"first", b"both", b"last", b"both")
    for name, case in ITEM_CASES.items():
        case.make(foreign, name.encode())
    ids = [b"1", b"2", b"both", b"none", *(name.encode() for name in ITEM_CASES)]
    queue = WorkQueue(interleaved, QUEUE)

    def found(*asked: list[bytes]) -> list[ItemReport]:
        return [comparable(each) for some in asked for each in look_up(queue, some)]

    by_script = found(ids)
    places = [(each.main_places, each.processing_places) for each in by_script[:4]]
    assert places == [([1, 3], []), ([2], []), ([], [1, 3]), ([], [])]
    assert interleaved.calls == ["look_up"]
    assert found([*ids, *OTHERS])[: len(ids)] == by_script
    assert "LRANGE" in interleaved.calls
    raw.lpush("jobs:queue", *numbered(30_000, b"behind %d"))
    interleaved.calls.clear()
    assert found(*(ids[at : at + 20] for at in range(0, len(ids), 20))) == by_script
    assert any("LPOS" in call for call in interleaved.calls)


@pytest.mark.parametrize("ids", [[b"none"], [b"none", *OTHERS]], ids=["by name", "in the lists"])
def test_the_longer_list_is_read_once(
    interleaved: Interleaved, raw: Redis, ids: list[bytes]
) -> None:
    """The shorter one is read again, for what moved meanwhile."""
    costs = []
    for shorter, longer in (("queue", "processing"), ("processing", "queue")):
        raw.flushall()
        raw.lpush(f"jobs:{shorter}", b"1")
        raw.lpush(f"jobs:{longer}", *numbered(30_000, b"x %d"))
        raw.config_resetstat()
        Places.read(WorkQueue(interleaved, QUEUE), ids)
        costs.append(raw.info("stats")["total_net_output_bytes"] // 50_000)
    assert costs[0] == costs[1]


def test_an_id_that_is_listed_often_is_found_in_time(queue: WorkQueue, raw: Redis) -> None:
    raw.lpush("jobs:queue", *[b"a"] * 30_000)
    began_s = process_time()
    found = Places.read(queue, [b"a", *OTHERS])
    assert len(found.main[b"a"]) == 30_000
    assert process_time() - began_s < 1


@pytest.mark.parametrize(
    ("place", "before", "found"),
    [
        ("waiting", "main", (0, 1)),
        ("waiting", "processing again", (0, 1)),
        ("abandoned", "main", (1, 0)),
        ("abandoned", "processing again", (0, 1)),
    ],
)
def test_an_item_moving_between_reads_is_found_once(
    interleaved: Interleaved,
    foreign: Foreign,
    keys: QueueKeys,
    place: str,
    before: str,
    found: tuple[int, int],
) -> None:
    """It is found where it is or where it was, and never in both or in neither."""
    getattr(foreign, place)(b"x")
    foreign.waiting(b"y", b"z")
    way = [keys.main, keys.processing]
    until = [*way[::-1], *([keys.processing] * (before == "processing again"))]
    read: list[bytes] = []

    def act(command: str) -> None:
        key = interleaved.words[1] if command == "LRANGE" else None
        if key is None or key == (read[-1] if read else None):
            return
        read.append(key)
        if read == until:
            foreign.raw.rpoplpush(*(way if place == "waiting" else way[::-1]))

    interleaved.before = act
    facts, *_ = facts_of(WorkQueue(interleaved, QUEUE), [b"x", *OTHERS])
    assert (facts.in_main, facts.in_processing) == found


@pytest.mark.usefixtures("up_for_days")
@pytest.mark.needs("no-touch")
def test_looking_changes_nothing_not_even_an_idle_time(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    """A waiting item's idle time is its age, which nothing else tells; that of a list is not."""
    for name, case in ITEM_CASES.items():
        case.make(foreign, name.encode())
    raw.execute_command("CLIENT", "NO-TOUCH", "ON")
    ids = [name.encode() for name, case in ITEM_CASES.items() if case.state.is_item]
    items = list(map(foreign.keys.item, ids))
    for item_id in ids:
        foreign.unused_for(item_id, 1000)
    before = everything(raw)
    everywhere = Source(main=True, processing=True, delayed=True, buried=True, deep=True)
    for look in (
        queue.lengths,
        lambda: queue.counts(deep=True),
        lambda: list(queue.items(everywhere, data=True)),
        lambda: list(queue.items(everywhere._replace(deep=False), tail=True)),
        lambda: list(queue.items(everywhere, Selection(older_than_s=0))),
        lambda: list(leases(queue, data=True)),
        lambda: describe_items(queue, inspect_items(queue, ids), data=True),
        queue.diagnose,
    ):
        look()
        assert everything(raw) == before
        assert min(raw.object("IDLETIME", key) for key in items) >= 1000
    ((described,), _) = describe_items(queue, inspect_items(queue, [b"waiting"]), data=True)
    assert described.idle_s is not None
    assert described.idle_s >= 1000


def test_each_lease_key_of_a_report(queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
    foreign.leased(b"1", holder=b"new one", ttl_ms=None, generations="new")
    raw.lpush(b"jobs:leased_by_session:1", b"text")
    (report,) = inspect_items(queue, [b"1"])
    assert report.facts.new_lease == Lease(b"new one", None)
    assert report.facts.old_lease is not None
    assert report.facts.wrong_types == {b"jobs:leased_by_session:1": "list"}


def test_the_rate_is_how_many_items_left_meanwhile(
    queue: WorkQueue, raw: Redis, clock: FakeClock, foreign: Foreign
) -> None:
    foreign.waiting(*(b"%d" % number for number in range(10)))
    reports = inspect_items(queue, [b"9", b"3", b"2"])
    assert forecast(queue, reports, sample_s=2.0) == [Forecast(0.0, None)] * 3
    clock.during_sleep = lambda: raw.rpop("jobs:queue", 3)
    found = forecast(queue, reports, sample_s=2.0)
    # One was leased meanwhile.
    assert found == [Forecast(1.5, 4.0), Forecast(1.5, 0.0), None]
    assert clock.slept_s == [2.0, 2.0]
