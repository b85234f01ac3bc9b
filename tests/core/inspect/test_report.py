"""All that is known of an ID, and that looking changes nothing, not even an idle time."""

import pytest
from redis import Redis

from rwq_cli.core import Item, Lease, Selection, Source, State, WorkQueue
from rwq_cli.core.inspect.listing import leases
from rwq_cli.core.inspect.lookup import (
    describe as describe_items,
    inspect_items,
)
from tests.conftest import Foreign, supports_no_touch
from tests.digest import digest
from tests.item_cases import ITEM_CASES


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
    before = digest(raw)
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
        assert digest(raw) == before
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
