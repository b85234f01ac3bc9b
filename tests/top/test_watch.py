"""What a tick of a watch of many queues reads."""

import pytest
import redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.errors import WrongType
from rwq_cli.core.inspect.cursor import PAGE_SIZE
from rwq_cli.top.watch import SLOW_S, QueueWatch, interval_s
from tests.conftest import Foreign
from tests.support import numbered


def watch_of(queue: WorkQueue, *names: bytes) -> QueueWatch:
    """A watch of these queues on the connection and clock of a queue."""
    return QueueWatch(queue.connection, names, queue.clock)


def rows_of(watch: QueueWatch) -> dict[bytes, tuple[int, ...]]:
    """By queue: waiting, running and abandoned (-1 for unknown), delayed and buried."""
    return {
        row.queue: (
            row.sample.waiting,
            -1 if row.running is None else row.running,
            -1 if row.abandoned is None else row.abandoned,
            row.sample.delayed,
            row.sample.buried,
        )
        for row in watch.tick().rows
    }


def test_a_row_counts_every_state_once(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"w1", b"w2")
    foreign.leased(b"l1")
    foreign.abandoned(b"a1", b"a2")
    foreign.delayed(b"d1", 9_999_999_999_999)
    foreign.buried(b"b1")
    watch = watch_of(queue, b"jobs", b"none")
    assert rows_of(watch) == {b"jobs": (2, 1, 2, 1, 1), b"none": (0, 0, 0, 0, 0)}
    status = watch.tick().status
    assert status is not None
    assert (status.version is not None, status.persists) == (True, False)
    assert status.used_bytes is not None


def test_abandoned_are_counted_a_few_queues_at_once(queue: WorkQueue, raw: redis.Redis) -> None:
    """The oldest counts first, so that each queue has its turn."""
    names = numbered(5, b"q%d")
    for name in names:
        Foreign(raw, name).abandoned(*numbered(PAGE_SIZE))
    watch = watch_of(queue, *names)
    counted = []
    for _ in range(4):
        counted.append([row.abandoned is not None for row in watch.tick().rows].count(True))
    assert counted == [2, 4, 5, 5]


def test_a_queue_of_the_wrong_type_is_left_out(queue: WorkQueue, raw: redis.Redis) -> None:
    raw.set("bad:processing", "x")
    overview = watch_of(queue, b"bad", b"jobs").tick()
    assert [row.queue for row in overview.rows] == [b"jobs"]
    assert [each.message for each in overview.left_out] == ["bad:processing has the wrong type"]
    with pytest.raises(WrongType, match="bad:processing"):
        watch_of(queue, b"bad").tick()


@pytest.mark.parametrize(
    ("call_s", "wait_s"), [(0.0, 2.0), (SLOW_S, 2.0), (0.15, 3.0), (60.0, 15.0)]
)
def test_a_slow_server_is_asked_less_often(call_s: float, wait_s: float) -> None:
    assert interval_s(2.0, call_s) == pytest.approx(wait_s)
