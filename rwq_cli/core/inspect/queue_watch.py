"""Reading many queues at an interval, at a bounded cost to the server."""

from collections.abc import Iterable, Mapping, Sequence
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
    last_of,
    read_samples,
)
from rwq_cli.core.inspect.counting import Taken, count_taken
from rwq_cli.core.inspect.cursor import PAGE_SIZE
from rwq_cli.core.inspect.queues import next_ages
from rwq_cli.core.inspect.server_status import ServerStatus, server_status

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection

# A server that takes longer for one call is asked less often.
SLOW_S = 0.1
# After a slow call, the interval is this many times as long as the call, up to this many seconds.
_INTERVAL_FACTOR = 20
_INTERVAL_MAX_S = 15.0
# Entries of which a tick reads the states, about 10 ms of the server's time; and how long it goes
# on with processing lists that are longer than a page.
_ENTRIES_PER_TICK = 2 * PAGE_SIZE
_COUNT_S = 0.1
# How often the status of the server is read, seconds.
_STATUS_EVERY_S = 10.0


def interval_s(every_s: float, call_s: float) -> float:
    """How long to wait between two reads, given how long a call of the last one took."""
    if call_s <= SLOW_S:
        return every_s
    return max(every_s, min(_INTERVAL_FACTOR * call_s, _INTERVAL_MAX_S))


class QueueRow(NamedTuple):
    """What is known of a queue; None for what is unknown."""

    queue: bytes
    sample: Sample
    # What is in processing.
    taken: Taken | None = None
    # About how long the next item has waited.
    next_age_s: int | None = None
    rates: Rates = UNKNOWN_RATES
    # How many items waited in the last samples, the latest last.
    history: Sequence[int] = ()

    @property
    def abandoned(self) -> int | None:
        """How many items are abandoned; None if they were not counted."""
        return None if self.taken is None else self.taken.abandoned

    @property
    def running(self) -> int | None:
        """The entries of processing that are not abandoned; None if those were not counted."""
        if self.taken is None or self.taken.is_least:
            return None if self.taken is None else self.taken.running
        return max(0, self.sample.processing - self.taken.abandoned)

    @property
    def is_least(self) -> bool:
        """Whether both may be more: the processing list is long."""
        return self.taken is not None and self.taken.is_least


class Overview(NamedTuple):
    """What is known of all watched queues, by name, and of their server."""

    rows: Sequence[QueueRow] = ()
    status: ServerStatus | None = None
    # Why some queues are left out.
    left_out: Sequence[ServerError] = ()
    # How long a sampling call took on average, or the call for the ages, if longer.
    call_s: float = 0.0
    # How old the oldest count of abandoned items is.
    abandoned_age_s: float = 0.0


class QueueWatch:
    """Samples queues again and again.

    A tick reads lengths and both ends of the main lists. Abandoned items are counted as `rwq
    queues` counts them, which takes time for each entry of processing: for a limited time in one
    tick, the oldest counts first.
    """

    def __init__(
        self, connection: "Connection", names: Iterable[bytes], clock: Clock | None = None
    ) -> None:
        self._connection = connection
        self._clock = clock or SystemClock()
        self._queues: dict[bytes, Queue] = {}
        self._activities: dict[bytes, Activity] = {}
        # The last counts, None for those that were refused, and when they were made.
        self._taken: dict[bytes, tuple[Taken | None, float]] = {}
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
                self._taken.pop(name, None)

    def tick(self) -> Overview:
        """Sample all queues now."""
        queues = [self._queues[name] for name in sorted(self._queues)]
        now_s = self._clock.monotonic()
        if now_s - self._status_at_s >= _STATUS_EVERY_S:
            self._status, self._status_at_s = server_status(self._connection), now_s
        started_s = perf_counter()
        found = read_samples(queues, last_of(self._activities))
        calls = -(-len(queues) // QUEUES_PER_CALL)
        call_s = (perf_counter() - started_s) / max(1, calls)
        left_out = [each for each in found.values() if isinstance(each, ServerError)]
        samples = {n: each for n, each in found.items() if not isinstance(each, ServerError)}
        if left_out and not samples:
            raise left_out[0]
        for name, each in samples.items():
            self._activities[name].add(each)
        started_s = perf_counter()
        next_ids = {self._queues[n]: each.next for n, each in samples.items() if each.next}
        ages = next_ages(next_ids)
        call_s = max(call_s, perf_counter() - started_s)
        oldest_s = self._count_taken(samples, now_s)
        rows = [self._row(name, sample, ages.get(name)) for name, sample in samples.items()]
        return Overview(rows, self._status, left_out, call_s, oldest_s)

    def _row(self, name: bytes, sample: Sample, age_s: int | None) -> QueueRow:
        (taken, _), activity = self._taken.get(name, (None, 0.0)), self._activities[name]
        return QueueRow(name, sample, taken, age_s, activity.rates(), activity.waiting)

    def _count_taken(self, samples: Mapping[bytes, Sample], now_s: float) -> float:
        """Count abandoned items, as many as a tick may; return the age of the oldest count."""
        empty = [name for name, sample in samples.items() if not sample.processing]
        self._taken.update((name, (Taken(), now_s)) for name in empty)
        pending = sorted(samples.keys() - empty, key=lambda name: (self._counted_at_s(name), name))
        room = _ENTRIES_PER_TICK
        chosen: list[bytes] = []
        for name in pending:
            room -= min(samples[name].processing, PAGE_SIZE)
            if room < 0:
                break
            chosen.append(name)
        counts = count_taken([self._queues[name] for name in chosen], within_s=_COUNT_S)
        for name, each in zip(chosen, counts, strict=True):
            self._taken[name] = (each if isinstance(each, Taken) else None, now_s)
        times = [self._counted_at_s(name) for name in pending if name in self._taken]
        return now_s - min(times, default=now_s)

    def _counted_at_s(self, name: bytes) -> float:
        return self._taken[name][1] if name in self._taken else float("-inf")
