"""Reading many queues at an interval, at a bounded cost to the server."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from rwq_cli.core.clock import Clock, SystemClock
from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.activity import (
    QUEUES_PER_CALL,
    UNKNOWN_RATES,
    Activity,
    Rates,
    Sample,
    read_samples,
)
from rwq_cli.core.inspect.counting import count_abandoned
from rwq_cli.core.inspect.cursor import PAGE_SIZE
from rwq_cli.core.inspect.first_items import next_ages
from rwq_cli.core.inspect.server_status import ServerStatus, server_status

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection

# A server that takes longer for one call is asked less often.
SLOW_S = 0.1
# After a slow call, the interval is this many times as long as the call, up to this many seconds.
_INTERVAL_FACTOR = 20
_INTERVAL_MAX_S = 15.0
# Entries of processing whose states are read in one tick: about 10 ms of the server's time.
_ENTRIES_PER_TICK = 2 * PAGE_SIZE
# How often the status of the server is read, seconds.
_STATUS_EVERY_S = 10.0


def interval_s(every_s: float, call_s: float) -> float:
    """How long to wait between two reads.

    Args:
        every_s: The requested interval.
        call_s: How long a call of the last read took: see `Overview`.
    """
    return (
        every_s
        if call_s <= SLOW_S
        else max(every_s, min(_INTERVAL_FACTOR * call_s, _INTERVAL_MAX_S))
    )


class QueueRow(NamedTuple):
    """What is known of a queue.

    Attributes:
        queue: Its name.
        sample: Its lengths.
        abandoned: How many items are abandoned; None if they were not counted.
        next_age_s: About how long the next item has waited; None if unknown.
        rates: How fast it fills and drains.
        history: How many items waited in the last samples, the latest last.
    """

    queue: bytes
    sample: Sample
    abandoned: int | None = None
    next_age_s: int | None = None
    rates: Rates = UNKNOWN_RATES
    history: Sequence[int] = ()

    @property
    def running(self) -> int | None:
        """The entries of processing that are not abandoned; None if those were not counted."""
        if self.abandoned is None:
            return None
        return max(0, self.sample.processing - self.abandoned)


class Overview(NamedTuple):
    """What is known of all watched queues.

    Attributes:
        rows: The queues, by name.
        status: The server's status; None if it is not known yet.
        left_out: Why some queues are left out.
        call_s: How long a sampling call took on average, or the call for the ages, if longer.
        abandoned_age_s: How old the oldest count of abandoned items is, seconds.
    """

    rows: Sequence[QueueRow] = ()
    status: ServerStatus | None = None
    left_out: Sequence[ServerError] = ()
    call_s: float = 0.0
    abandoned_age_s: float = 0.0


@dataclass(slots=True)
class _Abandoned:
    """The last count of the abandoned items of a queue, and when it was made."""

    count: int | None
    at_s: float


class QueueWatch:
    """Samples queues again and again.

    A tick reads lengths and both ends of the main lists. Abandoned items are counted as `rwq
    queues` counts them, which takes time for each entry of processing: a limited number of entries
    in one tick, the oldest counts first.

    Args:
        connection: The server.
        names: The names of the queues.
        clock: The clock, which tests replace.
    """

    def __init__(
        self, connection: "Connection", names: Iterable[bytes], clock: Clock | None = None
    ) -> None:
        self._connection = connection
        self._clock = clock or SystemClock()
        self._queues: dict[bytes, Queue] = {}
        self._activities: dict[bytes, Activity] = {}
        self._abandoned: dict[bytes, _Abandoned] = {}
        self._status: ServerStatus | None = None
        self._status_at_s = float("-inf")
        self.watch(names)

    def watch(self, names: Iterable[bytes]) -> None:
        """Watch these queues, and those that were not empty a short time ago."""
        wanted = set(names)
        for name in sorted(wanted - self._queues.keys()):
            self._queues[name] = Queue(self._connection, name, clock=self._clock)
            self._activities[name] = Activity()
        for name in self._queues.keys() - wanted:
            if self._activities[name].is_idle:
                del self._queues[name], self._activities[name]
                self._abandoned.pop(name, None)

    def tick(self) -> Overview:
        """Sample all queues now.

        Raises:
            ServerError: The server is unreachable, the connection was lost, or it refused.
        """
        queues = [self._queues[name] for name in sorted(self._queues)]
        now_s = self._clock.monotonic()
        if now_s - self._status_at_s >= _STATUS_EVERY_S:
            self._status, self._status_at_s = server_status(self._connection), now_s
        last = {
            name: sample
            for name, activity in self._activities.items()
            if (sample := activity.last) is not None
        }
        started_s = perf_counter()
        found = read_samples(queues, last)
        calls = -(-len(queues) // QUEUES_PER_CALL)
        call_s = (perf_counter() - started_s) / max(1, calls)
        samples: dict[bytes, Sample] = {}
        left_out: list[ServerError] = []
        for name, each in found.items():
            if isinstance(each, ServerError):
                left_out.append(each)
            else:
                samples[name] = each
                self._activities[name].add(each)
        if left_out and not samples:
            raise left_out[0]
        started_s = perf_counter()
        next_ids = {
            self._queues[name]: sample.next
            for name, sample in samples.items()
            if sample.next is not None
        }
        ages = next_ages(next_ids, entries_max=_ENTRIES_PER_TICK)
        call_s = max(call_s, perf_counter() - started_s)
        oldest_s = self._count_abandoned(samples, now_s)
        rows = [self._row(name, sample, ages.get(name)) for name, sample in samples.items()]
        return Overview(rows, self._status, left_out, call_s, oldest_s)

    def _row(self, name: bytes, sample: Sample, age_s: int | None) -> QueueRow:
        abandoned, activity = self._abandoned.get(name), self._activities[name]
        count = None if abandoned is None else abandoned.count
        return QueueRow(name, sample, count, age_s, activity.rates(), activity.waiting)

    def _count_abandoned(self, samples: dict[bytes, Sample], now_s: float) -> float:
        """Count abandoned items, as many as a tick may; return the age of the oldest count."""
        room = _ENTRIES_PER_TICK
        chosen: list[bytes] = []
        pending: list[bytes] = []
        for name, sample in samples.items():
            if sample.processing == 0:
                self._abandoned[name] = _Abandoned(0, now_s)
            elif sample.processing > PAGE_SIZE:
                self._abandoned[name] = _Abandoned(None, now_s)
            else:
                pending.append(name)
        pending.sort(key=self._counted_at_s)
        for name in pending:
            if samples[name].processing > room:
                break
            room -= samples[name].processing
            chosen.append(name)
        counts = count_abandoned([self._queues[name] for name in chosen])
        for name, count in zip(chosen, counts, strict=True):
            known = count if isinstance(count, int) else None
            self._abandoned[name] = _Abandoned(known, now_s)
        return now_s - min(
            (self._counted_at_s(name) for name in pending if name in self._abandoned), default=now_s
        )

    def _counted_at_s(self, name: bytes) -> float:
        known = self._abandoned.get(name)
        return float("-inf") if known is None else known.at_s
