"""The work queue as its users see it: one life of an item, items that were leased, names."""

from collections.abc import Callable
from datetime import UTC, datetime
from math import inf, nan
from typing import Any

import pytest
import redis.asyncio
from redis import Redis

from rwq_cli.core import (
    FLUSH,
    CleanAction,
    Due,
    InvalidArgument,
    LeasedItem,
    LeaseLost,
    NewItem,
    Outcome,
    Repair,
    RetryPolicy,
    Server,
    Source,
    State,
    Status,
    WorkQueue,
    WrongType,
    connect,
)
from rwq_cli.core.inspect.listing import leases
from tests.conftest import QUEUE, Backend, FakeClock, Foreign, contents
from tests.core.test_keys import STRANGE


def test_text_is_taken_as_utf8(backend: Backend, raw: Redis) -> None:
    queue = WorkQueue(backend.connect(), "jöbs", holder="mé")
    assert queue.name == "jöbs".encode()
    assert queue.add("dätä", "ïd") is True
    item = queue.lease()
    assert item is not None
    assert (item.item_id, item.data) == ("ïd".encode(), "dätä".encode())
    assert raw.get("jöbs:lease:ïd") == "mé".encode()


def test_each_session_has_a_holder_of_its_own(backend: Backend) -> None:
    connection = backend.connect()
    holders = {WorkQueue(connection, QUEUE).holder for _ in range(3)}
    assert len(holders) == 3
    assert {len(holder.removeprefix(b"rwq:")) for holder in holders} == {32}


@pytest.mark.parametrize("name", STRANGE)
def test_an_item_lives_under_any_name(
    backend: Backend, raw: Redis, clock: FakeClock, name: bytes
) -> None:
    """Beside queues of all the other names, which must stay as they are."""
    ids = STRANGE
    for other in STRANGE:
        if other != name:
            Foreign(raw, other).waiting(b"1")
            Foreign(raw, other).data(b"orphan")
    before = contents(raw)
    queue = WorkQueue(backend.connect(), name, clock=clock)

    def statuses(verb: str, queue: WorkQueue = queue) -> list[Status]:
        return [outcome.status for outcome in getattr(queue, verb)(ids)]

    added = queue.add_many(NewItem(item_id, b"data") for item_id in ids)
    assert {outcome.status for outcome in added} == {Status.ADDED}
    assert [item.item_id for item in queue.items(Source(main=True))] == ids
    assert [item.item_id for item in queue.lease_many(len(ids))] == ids
    assert statuses("touch_many") == [Status.TOUCHED] * len(ids)
    assert sorted(item.item_id for item in leases(queue)) == sorted(ids)
    assert statuses("release_many") == [Status.RELEASED] * len(ids)
    raw.delete(name + b":queue")
    actions = list(queue.deep_clean())
    assert sorted(actions, key=lambda action: action.item_id) == [
        CleanAction(item_id, Repair.RETURNED, State.ORPHANED) for item_id in sorted(ids)
    ]
    assert queue.counts(deep=True).waiting == len(ids)
    assert statuses("complete_many") == [Status.COMPLETED] * len(ids)
    assert contents(raw) == before


ACTS: dict[str, tuple[Callable[[LeasedItem], Outcome], Status]] = {
    "complete": (LeasedItem.complete, Status.COMPLETED),
    "touch": (LeasedItem.touch, Status.TOUCHED),
    "release": (LeasedItem.release, Status.RELEASED),
    "delay": (lambda item: item.release(delay_s=9), Status.DELAYED),
    "bury": (lambda item: item.bury("why"), Status.BURIED),
}


def leased(queue: WorkQueue) -> LeasedItem:
    queue.add(b"data", "1")
    item = queue.lease(for_s=60)
    assert item is not None
    return item


@pytest.mark.parametrize("act", ACTS)
def test_a_leased_item_acts_under_its_own_lease_only(
    queue: WorkQueue, raw: Redis, foreign: Foreign, act: str
) -> None:
    item = leased(queue)
    foreign.lease(b"1", holder=b"another")
    before = contents(raw)
    do, done = ACTS[act]
    assert do(item) == Outcome(b"1", Status.NOT_OWNER, holder=b"another")
    assert contents(raw) == before
    assert not item.is_ended
    raw.set("jobs:lease:1", queue.holder, ex=60)
    raw.set("jobs:leased_by_session:1", queue.holder, ex=60)
    assert do(item) == Outcome(b"1", done)
    assert item.is_ended is (act != "touch")


def test_a_result_is_kept_with_it(queue: WorkQueue) -> None:
    assert leased(queue).complete(b"done").status is Status.COMPLETED
    result = queue.result("1").result
    assert result is not None
    assert result.result == b"done"


def test_a_block_completes_its_item(queue: WorkQueue) -> None:
    with queue.leased() as item:
        assert item is None
    queue.add(b"data", "1")
    with queue.leased(for_s=60) as item:
        assert item is not None
        assert queue.state("1") is State.LEASED
    assert queue.state("1") is State.GONE


def test_an_exception_in_a_block_returns_the_item(queue: WorkQueue) -> None:
    queue.add(b"data", "1")
    with pytest.raises(KeyboardInterrupt), queue.leased():
        raise KeyboardInterrupt
    assert queue.state("1") is State.WAITING


@pytest.mark.parametrize("act", ["complete", "release", "bury"])
def test_a_block_may_end_its_item_itself(queue: WorkQueue, act: str) -> None:
    queue.add(b"data", "1")
    with queue.leased() as item:
        assert item is not None
        ACTS[act][0](item)
        ended = queue.state("1")
    assert queue.state("1") is ended


def test_a_block_whose_lease_was_lost_says_so(queue: WorkQueue, foreign: Foreign) -> None:
    queue.add(b"data", "1")
    with pytest.raises(LeaseLost) as caught, queue.leased():
        foreign.lease(b"1", holder=b"another")
    assert caught.value.message == "1 is not leased to this session any more"
    assert queue.state("1") is State.LEASED


def test_what_changes_something_does_it_when_called(queue: WorkQueue, raw: Redis) -> None:
    list(queue.add_many(NewItem(b"%d" % number, b"data") for number in range(8)))
    assert queue.remove("0", b"nothing") == [
        Outcome(b"0", Status.REMOVED),
        Outcome(b"nothing", Status.MISSING),
    ]
    queue.move("1", to="other")
    assert raw.lrange("other:queue", 0, -1) == [b"1"]
    queue.bury("2", reason=b"why")
    assert [item.reason for item in queue.items(Source(buried=True))] == [b"why"]
    queue.kick("2")
    queue.release("3", delay_s=60)
    assert queue.state("3") is State.DELAYED
    queue.complete("4", result=b"done")
    assert raw.exists("jobs:item:4") == 0
    item = queue.lease()
    assert item is not None
    queue.touch(item.item_id, for_s=900, owner=queue.holder)
    assert raw.ttl(b"jobs:lease:" + item.item_id) > 800
    assert queue.purge(grace_s=0) == 5
    assert not raw.keys("jobs:*")


@pytest.mark.parametrize("verb", ["complete", "touch", "release", "bury", "kick", "remove"])
def test_one_id_is_no_list_of_ids(queue: WorkQueue, raw: Redis, verb: str) -> None:
    for data in ("a", "b", "ab"):
        queue.add(data, data)
    before = contents(raw)
    many: Any = getattr(queue, f"{verb}_many")
    for one in ("ab", b"ab", bytearray(b"ab")):
        with pytest.raises(TypeError, match="several IDs"):
            many(one)
    with pytest.raises(TypeError, match="an ID is bytes or str, not list"):
        getattr(queue, verb)(["ab"])
    with pytest.raises(TypeError, match="not int"):
        list(many(b"a"[0:1] if item is None else item for item in (97,)))
    assert contents(raw) == before


def test_points_in_time(queue: WorkQueue) -> None:
    when = datetime(2100, 1, 1, tzinfo=UTC)
    queue.add(b"data", "datetime", at=when)
    queue.add(b"data", "seconds", at=when.timestamp())
    list(queue.add_many([NewItem(b"many", b"data", Due.at(when))]))
    assert [item.due_at for item in queue.items(Source(delayed=True))] == [when] * 3
    with pytest.raises(InvalidArgument, match="time zone"):
        queue.add(b"data", "naive", at=datetime(2100, 1, 1))


@pytest.mark.parametrize("seconds", [nan, inf, 1e18])
@pytest.mark.parametrize(
    ("call", "may_be_endless"),
    [
        (lambda queue, s: queue.add("a", delay_s=s), False),
        (lambda queue, s: queue.add("a", at=s), False),
        (lambda queue, s: queue.lease(for_s=s), False),
        (lambda queue, s: queue.complete("1", result=b"", result_ttl_s=s), False),
        (lambda queue, s: queue.touch("1", for_s=s), False),
        (lambda queue, s: queue.release("1", delay_s=s), False),
        (lambda queue, s: queue.release("1", grace_s=s), False),
        (lambda queue, s: queue.bury("1", grace_s=s), False),
        (lambda queue, s: queue.move("1", to="other", grace_s=s), False),
        (lambda queue, s: queue.purge(grace_s=s), False),
        (lambda queue, s: queue.light_clean(grace_s=s), False),
        (lambda queue, s: queue.diagnose(grace_s=s), False),
        (lambda queue, s: queue.work(print, for_s=s), False),
        (lambda queue, s: queue.work(print, result_ttl_s=s), False),
        (lambda queue, s: queue.work(print, policy=RetryPolicy(backoff_s=s)), False),
        (lambda _queue, s: connect(Server("redis://h", reply_timeout_s=s)), False),
        (lambda queue, s: queue.lease(wait_s=s), True),
        (lambda queue, s: queue.result("1", timeout_s=s), True),
        (lambda queue, s: queue.work(print, reconnect_s=s), True),
    ],
)
def test_times_that_are_none_are_refused(
    queue: WorkQueue,
    foreign: Foreign,
    raw: Redis,
    call: Callable[[WorkQueue, float], Any],
    seconds: float,
    *,
    may_be_endless: bool,
) -> None:
    if may_be_endless and seconds == inf:
        return
    foreign.leased(b"1")
    before = contents(raw)
    with pytest.raises(InvalidArgument):
        call(queue, seconds)
    assert contents(raw) == before


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda queue: queue.add({"a": 1}), "dict"),
        (lambda queue: queue.add(5), "int"),
        (lambda queue: queue.add("a", 5), "int"),
        (lambda queue: list(queue.add_many([NewItem("a", "b")])), "str, str"),  # type: ignore[arg-type]
        (lambda queue: list(queue.add_many([NewItem(b"a", "b")])), "bytes, str"),  # type: ignore[arg-type]
        (lambda queue: list(queue.add_many([(b"a", b"b")])), "bytes, bytes"),
        (lambda _queue: connect(redis.asyncio.Redis()), "redis.asyncio.Redis"),  # type: ignore[arg-type]
    ],
)
def test_what_is_none_of_the_right_kind_is_named(
    queue: WorkQueue, raw: Redis, call: Callable[[Any], Any], kind: str
) -> None:
    with pytest.raises(TypeError, match=f"not (a )?{kind}$"):
        call(queue)
    assert contents(raw) == {}


def test_items_share_one_connection(raw: Redis) -> None:
    path = raw.connection_pool.connection_kwargs["path"]
    with connect(f"unix://{path}") as connection:
        queue = WorkQueue(connection, QUEUE)

        def made() -> int:
            stats: Any = raw.info("stats")
            return int(stats["total_connections_received"])

        queue.add(b"data")
        before = made()
        for act in ("complete", "release", "bury") * 3:
            queue.add(b"data")
            with queue.leased() as item:
                assert item is not None
                ACTS[act][0](item)
        next(queue.complete_many([b"1", b"2"]))
        queue.lengths()
        assert made() == before


def test_a_flush_has_what_was_read_done_at_once(queue: WorkQueue) -> None:
    queue.add(b"data", "1")
    outcomes = queue.complete_many(item_id for item_id in (b"1", FLUSH, b"2"))
    assert next(outcomes).status is Status.COMPLETED
    assert queue.state("1") is State.GONE


def test_a_transaction_leaves_nothing_without_a_list(queue: WorkQueue, raw: Redis) -> None:
    queue.add(b"data", "1")
    raw.delete(queue.keys.main, queue.keys.item(b"1"))
    raw.set(queue.keys.main, "text")
    with pytest.raises(WrongType):
        queue.add(b"data")
    assert raw.keys() == [queue.keys.main]
