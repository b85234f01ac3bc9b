"""`rwq tail`: the events of each verb, and of each step of a foreign worker."""

import signal
import threading
from collections.abc import Callable, Iterator
from time import sleep
from typing import Any

import pytest
import redis

from rwq_cli.core import NewItem, WorkQueue
from rwq_cli.core.inspect import events
from rwq_cli.core.inspect.events import Tail
from rwq_cli.core.items.add import Due
from rwq_cli.core.items.schedule import promote
from rwq_cli.core.model import Event, State
from rwq_cli.core.repair.clean import clean
from rwq_cli.core.server import tracking
from tests.conftest import AsUser, Foreign, StartServer
from tests.driver import TIMEOUT_S, Rwq, next_line, until

pytestmark = pytest.mark.needs("tracking")


def is_followed(raw: redis.Redis) -> bool:
    """Whether the server tells somebody of changes."""
    return any("B" in client["flags"] for client in raw.client_list())


class Watcher:
    """Looks at a queue after each step."""

    def __init__(self, queue: WorkQueue) -> None:
        self.notes: list[str] = []
        queue.connection.on_wait = self.notes.append
        self.queue, self.tail = queue, Tail()
        self.tail.look([queue])

    def after(self, step: Callable[[], object]) -> list[Event]:
        step()
        return self.rest()

    def rest(self) -> list[Event]:
        """What has happened, until nothing does."""
        seen: list[Event] = []
        while more := self.tail.look([self.queue]):
            seen += more
        return seen

    def await_event(self, name: str, step: Callable[[], object] = lambda: None) -> None:
        """Take the step, and wait for this event, the only one."""
        seen = [event.event for event in self.after(step)]
        until(lambda: seen.extend(event.event for event in self.rest()) or bool(seen), name)
        assert seen == [name]

    def words(self, *steps: Callable[[], object]) -> list[list[str]]:
        return [[event.event for event in self.after(step)] for step in steps]


@pytest.fixture
def watcher(queue: WorkQueue, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watcher]:
    monkeypatch.setattr(events, "_WAIT_S", 0.03)
    monkeypatch.setattr(events, "_STEP_S", 0.1)
    watcher = Watcher(queue)
    yield watcher
    watcher.tail.close()


def test_every_operation_has_its_event(queue: WorkQueue, watcher: Watcher) -> None:
    def later(item_id: bytes) -> object:
        return list(queue.add_many([NewItem(item_id, b"", Due(60_000, from_now=True))]))

    steps: dict[str, Callable[[], object]] = {
        "added": lambda: list(queue.add_many([NewItem(b"a", b"x")])),
        "leased": lambda: queue.lease(for_s=60),
        "renewed": lambda: list(queue.touch_many([b"a"], for_s=99)),
        "returned": lambda: list(queue.release_many([b"a"])),
        "buried": lambda: list(queue.bury_many([b"a"], reason=b"bad")),
        "returned ": lambda: list(queue.kick_many([b"a"])),
        "leased ": lambda: queue.lease(for_s=60),
        "completed": lambda: list(queue.complete_many([b"a"])),
        "added and delayed": lambda: later(b"b"),
        "removed": lambda: list(queue.remove_many([b"b"])),
        "added and delayed ": lambda: list(
            queue.add_many([NewItem(b"d", b"", Due(10, from_now=True))])
        ),
        "returned  ": lambda: (sleep(0.02), list(promote(queue))),
        # Its settling lease goes with it, as a lease would.
        "completed or removed": lambda: list(queue.move_many([b"d"], to=b"other")),
        "added ": lambda: list(queue.add_many([NewItem(b"e", b"x")])),
        "removed ": lambda: list(queue.remove_many([b"e"])),
    }
    assert watcher.words(*steps.values()) == [[word.strip()] for word in steps]


def test_an_event_has_states_holder_and_duration(queue: WorkQueue, watcher: Watcher) -> None:
    watcher.words(lambda: queue.add(b"x", item_id=b"a"))
    (leased,) = watcher.after(lambda: queue.lease(for_s=60))
    sleep(0.05)
    (completed,) = watcher.after(lambda: list(queue.complete_many([b"a"])))
    assert leased[4:7] == (State.WAITING, State.LEASED, queue.holder)
    assert completed[4:7] == (State.LEASED, State.GONE, queue.holder)
    assert completed.leased_s is not None
    assert completed.leased_s * 1000 == pytest.approx(completed.at_ms - leased.at_ms, abs=5)
    assert completed.leased_s >= 0.05


def test_each_step_of_a_foreign_worker(
    foreign: Foreign, watcher: Watcher, raw: redis.Redis
) -> None:
    keys = foreign.keys

    def lease(px: int) -> object:
        return raw.set(keys.old_lease(b"f"), "w-1", px=px)

    assert watcher.words(
        # A producer between its two commands, and a worker between its pop and its lease.
        lambda: raw.set(keys.item(b"f"), "x"),
        lambda: raw.lpush(keys.main, "f"),
        lambda: raw.rpoplpush(keys.main, keys.processing),
        lambda: lease(60_000),
        lambda: raw.delete(keys.item(b"f")),
        lambda: raw.lrem(keys.processing, 0, "f"),
        lambda: raw.delete(keys.old_lease(b"f")),
    ) == [[], ["added"], [], ["leased"], ["completed"], [], []]
    # A worker that is killed, and a foreign cleaner, which changes only the lists.
    foreign.waiting(b"f")
    raw.rpoplpush(keys.main, keys.processing)
    lease(30)
    sleep(0.1)
    watcher.await_event("added and lost")
    raw.lrem(keys.processing, 0, "f")
    watcher.await_event("returned", lambda: raw.lpush(keys.main, "f"))


def test_what_happens_between_looks_is_one_event(
    foreign: Foreign, watcher: Watcher, raw: redis.Redis
) -> None:
    def whole_life(item_id: bytes) -> None:
        foreign.waiting(item_id)
        foreign.lease(item_id)
        raw.delete(foreign.keys.item(item_id))
        raw.lrem(foreign.keys.main, 0, item_id)

    assert watcher.words(lambda: whole_life(b"a")) == [["added and completed"]]
    assert watcher.words(lambda: foreign.leased(b"b")) == [["added and leased"]]


def test_an_earlier_item_was_completed_or_removed(
    queue: WorkQueue, foreign: Foreign, raw: redis.Redis
) -> None:
    foreign.waiting(b"old")
    watcher = Watcher(queue)
    assert watcher.words(lambda: raw.delete(foreign.keys.item(b"old"))) == [
        ["completed or removed"]
    ]
    watcher.tail.close()


def test_a_state_between_two_steps_is_an_event(foreign: Foreign, watcher: Watcher) -> None:
    watcher.await_event("added and orphaned", lambda: foreign.data(b"o"))


def test_cleans_expiry_and_a_flush(
    queue: WorkQueue, foreign: Foreign, watcher: Watcher, raw: redis.Redis
) -> None:
    watcher.await_event("added and leased", lambda: foreign.leased(b"a", ttl_ms=300))
    watcher.await_event("lost", lambda: sleep(0.3))
    assert watcher.words(lambda: list(clean(queue, deep=False, grace_s=0))) == [["returned"]]
    (flushed,) = watcher.after(raw.flushdb)
    assert (flushed.event, flushed.is_usual) == ("flushed", False)
    assert watcher.words(lambda: foreign.waiting(b"a")) == [["added"]]


def test_nothing_is_lost_silently(
    foreign: Foreign,
    watcher: Watcher,
    raw: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "IDS_PER_LOOK", 3)
    (missed, *others) = watcher.after(lambda: foreign.waiting(*(b"%d" % n for n in range(9))))
    if others:
        seen = [missed, *others]
        assert sum(event.missed for event in seen) + sum(bool(e.item_id) for e in seen) == 9
    monkeypatch.setattr(tracking, "KEYS_MAX", 3)
    seen = watcher.after(lambda: foreign.data(*(b"x%d" % n for n in range(9))))
    assert sum(event.missed for event in seen) == 6
    # The server ends the connection of a reader that does not read.
    raw.client_kill_filter(_type="pubsub", skipme=False)
    watcher.rest()
    assert watcher.notes[-1].endswith(" s no changes were seen")
    assert watcher.words(lambda: foreign.waiting(b"new")) == [["added"]]


def test_without_tracking_the_lists_are_looked_at(
    as_user: AsUser, foreign: Foreign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_POLL_S", 0.01)
    queue = WorkQueue(as_user("+@all", "-client|tracking"), b"jobs")
    foreign.waiting(b"old")
    watcher = Watcher(queue)
    assert "looked at once a second" in watcher.notes[0]
    assert watcher.words(
        lambda: foreign.waiting(b"a"),
        lambda: foreign.raw.rpoplpush(foreign.keys.main, foreign.keys.processing),
        lambda: foreign.lease(b"old"),
    ) == [["added"], [], ["leased"]]


def test_lines_records_and_what_chooses(rwq: Rwq, foreign: Foreign, raw: redis.Redis) -> None:
    def later(*steps: Callable[[], object]) -> threading.Thread:
        def work() -> None:
            until(lambda: is_followed(raw))
            for step in steps:
                sleep(0.2)
                step()

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    foreign.waiting(b"w")
    steps = (
        lambda: foreign.leased(b"4f2a9c", holder=b"worker-3"),
        lambda: foreign.leased(b"other", holder=b"worker-4"),
        lambda: raw.delete(foreign.keys.item(b"4f2a9c")),
    )

    def ran(*options: str) -> Any:
        raw.flushall()
        foreign.waiting(b"w")
        thread = later(*steps)
        result = rwq("tail", *options)
        thread.join()
        return result

    result = ran("--holder", "worker-3", "-n", "2", "-o", "table")
    lines = [line.split("  ", 1)[1] for line in result.text.splitlines()]
    assert lines[0] == "added and leased  4f2a9c  by worker-3"
    assert lines[1].startswith("completed  4f2a9c  by worker-3 after 0.")
    result = ran("--id-glob", "o*", "--timeout", "1s", "-n", "5", "-o", "jsonl")
    (record,) = result.jsonl
    assert (result.code, record["id"], record["after"]) == (1, "other", "leased")
    header, *rows = ran("-n", "3", "-o", "csv").text.splitlines()
    assert header == "id,at_ms,event,before,after,holder,leased_seconds,queue,missed"
    assert [row.split(",")[0] for row in rows] == ["4f2a9c", "other", "4f2a9c"]
    result = ran("--state", "waiting", "--timeout", "1s")
    assert (result.code, result.text) == (0, "")


def test_a_server_that_is_lost_is_waited_for(rwq: Rwq, start_server: StartServer) -> None:
    server = start_server()
    process = rwq.start("tail", "-q", "jobs", "-o", "jsonl", "-u", server.url)
    with server.client() as raw:
        until(lambda: is_followed(raw))
    server.kill()
    server.start()
    with server.client() as raw:
        until(lambda: b"no changes were seen" in next_line(process.stderr))
        Foreign(raw).waiting(b"a")
        assert b'"event": "added"' in next_line(process.stdout)
    process.send_signal(signal.SIGTERM)
    assert process.wait(TIMEOUT_S) == 0


def test_a_stopped_process_costs_a_bounded_buffer(rwq: Rwq, start_server: StartServer) -> None:
    server = start_server("--client-output-buffer-limit", "pubsub 1mb 0 0")
    process = rwq.start("tail", "-q", "jobs", "-o", "jsonl", "-u", server.url)
    largest = 0
    with server.client() as raw:
        until(lambda: is_followed(raw))
        process.send_signal(signal.SIGSTOP)
        for start in range(0, 60_000, 1000):
            raw.mset({b"jobs:item:%040d" % (start + number): b"" for number in range(1000)})
            largest = max(largest, *(int(client["omem"]) for client in raw.client_list()))
        assert not is_followed(raw)
        process.send_signal(signal.SIGCONT)
        until(lambda: b"no changes were seen" in next_line(process.stderr))
        until(lambda: is_followed(raw))
    assert largest < 2 << 20
