"""Rates beside what was done to the keys, and a reader that stops, is refused, or is cut."""

import threading
from collections.abc import Callable, Iterator
from threading import Event
from time import sleep

import pytest
import redis

from rwq_cli.core import NewItem, WorkQueue
from rwq_cli.core.errors import ServerError
from rwq_cli.core.inspect.rates import ItemTotals, RateMeter, Rates, Sample
from rwq_cli.core.items.schedule import promote
from rwq_cli.core.server import tracking
from rwq_cli.core.server.tracking import Tracker, prefixes_of
from tests.conftest import AsUser, FakeClock, Foreign, PrivateServer
from tests.driver import until
from tests.support import numbered

pytestmark = pytest.mark.needs("tracking")


class Looker:
    """Looks at a queue again and again, two seconds apart by the test's clock."""

    def __init__(self, queue: WorkQueue, clock: FakeClock, meter: RateMeter) -> None:
        self.queue, self.clock, self.meter = queue, clock, meter
        self.notes: list[str] = []
        queue.connection.on_wait = self.notes.append

    def look(self) -> tuple[int | None, int | None]:
        """How many items were added and done since the last look."""
        self.clock.now_s += 2
        sample = self.meter.sample([self.queue])[self.queue.name]
        assert isinstance(sample, Sample), sample
        return sample.added, sample.done

    @property
    def rates(self) -> Rates:
        return self.meter.rates(self.queue.name)


@pytest.fixture
def meter() -> Iterator[RateMeter]:
    meter = RateMeter()
    yield meter
    meter.close()


@pytest.fixture
def looker(queue: WorkQueue, clock: FakeClock, meter: RateMeter) -> Looker:
    looker = Looker(queue, clock, meter)
    assert looker.look() == (None, None)
    return looker


def test_items_that_pass_between_two_looks_are_counted(
    looker: Looker, foreign: Foreign, raw: redis.Redis
) -> None:
    """Nothing is ever seen of them but their keys: not by a length, not by an end of a list."""
    for number in range(300):
        foreign.waiting(b"%d" % number)
        raw.lpop(foreign.keys.main)
        raw.delete(foreign.keys.item(b"%d" % number))
    assert looker.look() == (300, 300)
    assert looker.rates == Rates(150.0, 150.0, None)
    assert looker.look() == (0, 0)


@pytest.mark.parametrize(
    ("happens", "rates"),
    [
        (lambda queue, _: list(queue.add_many([NewItem(b"x", b""), NewItem(b"y", b"")])), (2, 0)),
        (lambda queue, _: queue.lease(for_s=60), (0, 0)),
        (lambda queue, _: list(queue.remove_many([b"1", b"2"])), (0, 2)),
        (lambda queue, _: list(queue.bury_many([b"1"], reason=b"x")), (0, 0)),
        (lambda queue, _: list(promote(queue)), (0, 0)),
        (lambda queue, _: list(queue.move_many([b"1"], to=b"other")), (0, 1)),
        # A producer between its two commands, and a worker that has deleted what is still listed.
        (lambda _, foreign: foreign.data(b"new"), (0, 0)),
        (lambda _, foreign: foreign.raw.delete(foreign.keys.item(b"1")), (1, 1)),
        # Set again: nothing was added.
        (lambda _, foreign: foreign.data(b"1"), (0, 0)),
        (lambda _, foreign: foreign.raw.pexpire(foreign.keys.item(b"1"), 1), (1, 1)),
    ],
)
def test_what_counts(
    queue: WorkQueue,
    clock: FakeClock,
    meter: RateMeter,
    foreign: Foreign,
    happens: Callable[[WorkQueue, Foreign], object],
    rates: tuple[int, int],
) -> None:
    foreign.waiting(b"1", b"2", b"3")
    foreign.delayed(b"due", 1)
    looker = Looker(queue, clock, meter)
    looker.look()
    happens(queue, foreign)
    sleep(0.02)
    assert looker.look() == rates


def test_two_steps_of_a_worker_add_up_to_nothing(
    looker: Looker, foreign: Foreign, raw: redis.Redis
) -> None:
    foreign.waiting(b"1", b"2")
    assert looker.look() == (2, 0)
    raw.delete(foreign.keys.item(b"1"))
    assert looker.look() == (1, 1)
    raw.lrem(foreign.keys.main, 0, "1")
    foreign.waiting(b"3", b"4")
    # Two more, of which one was counted before.
    assert looker.look() == (1, 0)


def test_each_deletion_while_looking_is_counted_once(
    queue: WorkQueue, meter: RateMeter, raw: redis.Redis
) -> None:
    """Deletions beside each reply: counted by it, and named by the server only after it."""
    items, over = 6000, Event()
    foreign = Foreign(raw)

    def work() -> None:
        for number in range(items):
            item_id = b"%d" % number
            with raw.pipeline(transaction=False) as pipeline:
                pipeline.set(foreign.keys.item(item_id), "x").lpush(foreign.keys.main, item_id)
                pipeline.rpop(foreign.keys.main).delete(foreign.keys.item(item_id))
                pipeline.execute()
        over.set()

    meter.sample([queue])
    thread = threading.Thread(target=work)
    thread.start()
    samples = []
    while not over.is_set():
        samples.append(meter.sample([queue])[queue.name])
    thread.join()
    samples.append(meter.sample([queue])[queue.name])
    done = [sample.done or 0 for sample in samples if isinstance(sample, Sample)]
    assert (len(samples) > 10, sum(done)) == (True, items)


def test_what_is_named_later_is_not_counted_again(
    looker: Looker, foreign: Foreign, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An item that is done after the changes were taken, and before EXISTS."""
    foreign.waiting(b"a", b"b")
    take = Tracker.take

    def take_late(tracker: Tracker) -> tracking.Changes:
        changes = take(tracker)
        raw.pipeline().delete(foreign.keys.item(b"a")).lrem(foreign.keys.main, 0, "a").execute()
        return changes

    with monkeypatch.context() as patched:
        patched.setattr(Tracker, "take", take_late)
        assert looker.look() == (2, 1)
    assert looker.look() == (0, 0)


@pytest.mark.parametrize("item_id", [b"invalidate", b"message"])
def test_ids_are_no_messages_of_the_server(
    looker: Looker, foreign: Foreign, raw: redis.Redis, item_id: bytes
) -> None:
    foreign.waiting(b"b", item_id)
    raw.publish("rwq-follows", "a word")
    assert looker.look() == (2, 0)


def test_several_queues_and_one_that_comes_later(
    queue: WorkQueue, meter: RateMeter, raw: redis.Redis
) -> None:
    other, later = queue.sibling(b"a:b"), queue.sibling(b"later")
    meter.sample([queue, other])
    Foreign(raw).waiting(*numbered(3))
    Foreign(raw, b"a:b").waiting(b"x")
    samples = meter.sample([queue, other, later])
    assert [(s.added, s.done) for s in samples.values() if isinstance(s, Sample)] == [
        *((3, 0), (1, 0), (None, None)),
    ]
    Foreign(raw, b"later").waiting(b"y")
    seen = meter.sample([queue, other, later])[b"later"]
    assert isinstance(seen, Sample)
    assert (seen.added, seen.done) == (1, 0)


def test_what_was_missed_is_unknown_and_said(
    looker: Looker, foreign: Foreign, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign.waiting(*numbered(4))
    raw.flushdb()
    until(lambda: looker.look() != (0, 0))
    assert looker.meter.samples[b"jobs"][-1].done is None
    assert looker.look() == (0, 0)
    monkeypatch.setattr(tracking, "KEYS_MAX", 3)
    foreign.waiting(*numbered(4))
    assert looker.look() == (None, None)
    # The server ends the connection of a reader that does not read.
    raw.client_kill_filter(_type="pubsub", skipme=False)
    foreign.waiting(b"unseen")
    until(lambda: looker.look() != (0, 0))
    assert looker.look() == (0, 0)
    assert looker.notes[-1].startswith("rwq: jobs: the connection was lost; for ")


def test_a_namesake_in_another_database_is_told(
    looker: Looker, foreign: Foreign, server: PrivateServer
) -> None:
    other = redis.Redis.from_url(server.url, db=1)
    Foreign(other, b"another").waiting(b"1")
    foreign.waiting(b"1")
    assert looker.look() == (1, 0)
    Foreign(other).waiting(b"2")
    assert looker.look() == (None, None)
    other.flushdb()
    # Its items may come and go between two looks.
    assert looker.look() == (None, None)
    assert looker.queue.lengths().waiting == 1
    (note,) = looker.notes
    assert note.startswith("rwq: database 1 has jobs, too: rates are unknown, ")


def test_a_user_who_may_not_follow_gets_the_reason(
    as_user: AsUser, clock: FakeClock, foreign: Foreign, meter: RateMeter
) -> None:
    connection = as_user("+@all", "-subscribe")
    looker = Looker(WorkQueue(connection, b"jobs", clock=clock), clock, meter)
    foreign.waiting(b"a")
    assert [looker.look(), looker.look()] == [(None, None), (None, None)]
    assert looker.rates == Rates()
    (note,) = looker.notes
    assert note.startswith("rwq: rates are unknown: ")
    assert "subscribe" in note


def test_totals_of_a_service(
    queue: WorkQueue, foreign: Foreign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rwq_cli.core.inspect.rates._TOTALS_EVERY_S", 0.01)
    totals, over = ItemTotals(queue.connection), Event()
    thread = threading.Thread(target=totals.count, args=(lambda: [b"jobs"], over))
    thread.start()
    until(lambda: b"jobs" in totals.by_queue)
    foreign.waiting(*numbered(5))
    foreign.raw.pipeline().lrem(foreign.keys.main, 1, b"0001").delete(
        foreign.keys.item(b"0001")
    ).execute()
    until(lambda: totals.by_queue[b"jobs"][1] == 1)
    over.set()
    thread.join()
    assert totals.by_queue[b"jobs"] == (5, 1)


def test_prefixes_are_few_and_none_begins_another() -> None:
    names = [b"a:item:", b"a:item:b:item:", b"c:item:"]
    assert prefixes_of(names) == [b"a:item:", b"c:item:"]
    many = [b"mail:%d:item:" % number for number in range(100)]
    assert prefixes_of(many) == [b"mail:"]
    assert prefixes_of([*many, b"map:item:"]) == [b"ma"]
    assert prefixes_of([*many, b"jobs:item:"]) == [b""]
    assert not issubclass(tracking.TrackingRefused, ServerError)
