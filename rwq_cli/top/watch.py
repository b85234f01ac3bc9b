"""What a live view of many queues shows, at a bounded cost to the server."""

from collections.abc import Iterable, Mapping, Sequence
from time import perf_counter
from typing import NamedTuple

from rwq_cli.core.clock import Clock
from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.health import ServerStatus
from rwq_cli.core.inspect.counting import Taken, count_taken
from rwq_cli.core.inspect.cursor import PAGE_SIZE
from rwq_cli.core.inspect.history import last_waiting
from rwq_cli.core.inspect.queues import next_ages
from rwq_cli.core.inspect.rates import QUEUES_PER_CALL, RateMeter, Sample
from rwq_cli.core.inspect.server_status import server_statuses, status_of_all
from rwq_cli.core.server.connection import Connection
from rwq_cli.views.top import QueueRow

# Rates are measured over at least this long, seconds: a few items a minute are no flicker.
_RATE_SPAN_S = 10.0
# How many minutes of a history are read, and how often.
_WRITTEN, _WRITTEN_EVERY_S = 60, 30.0
# A server that takes longer for one call is asked less often.
SLOW_S = 0.1
# After a slow call, the interval is this many times as long as the call, up to this many seconds.
_INTERVAL_FACTOR = 20
_INTERVAL_MAX_S = 15.0
# Entries of which a tick reads the states, about 10 ms of the server's time; and how long it goes
# on with processing lists that are longer than a page.
_ENTRIES_PER_TICK = 2 * PAGE_SIZE
_COUNT_S = 0.1


def interval_s(every_s: float, call_s: float) -> float:
    """How long to wait between two reads, given how long a call of the last one took."""
    if call_s <= SLOW_S:
        return every_s
    return max(every_s, min(_INTERVAL_FACTOR * call_s, _INTERVAL_MAX_S))


class Overview(NamedTuple):
    rows: Sequence[QueueRow] = ()
    status: ServerStatus | None = None
    left_out: Sequence[ServerError] = ()
    # How long a sampling call took on average, or the call for the ages, if longer.
    call_s: float = 0.0


class QueueWatch:
    """Samples queues again and again. Counting abandoned items takes time for each entry of
    processing: a tick does it for a limited time, for those first whose turn was longest ago."""

    def __init__(
        self, connection: Connection, names: Iterable[bytes], clock: Clock | None = None
    ) -> None:
        self._connection = connection
        self._clock = clock or Clock()
        self._queues: dict[bytes, Queue] = {}
        self._meter = RateMeter(_RATE_SPAN_S)
        # What was written down of each; and from when on there may be more.
        self._written: dict[bytes, list[int]] = {}
        self._written_until_s = 0.0
        # The last counts, the oldest first; None for those that were refused.
        self._taken: dict[bytes, Taken | None] = {}
        self.watch(names)

    def watch(self, names: Iterable[bytes]) -> None:
        """Watch these queues, and those that were not empty a short time ago."""
        wanted = set(names)
        for name in wanted - self._queues.keys():
            self._queues[name] = Queue(self._connection, name, clock=self._clock)
        for name in self._queues.keys() - wanted:
            if not any(sample.total for sample in self._meter.samples[name]):
                del self._queues[name], self._meter.samples[name]
                self._taken.pop(name, None)

    def close(self) -> None:
        """Follow no queue any more."""
        self._meter.close()

    def tick(self) -> Overview:
        queues = [self._queues[name] for name in sorted(self._queues)]
        status = status_of_all(server_statuses(self._connection))
        started_s = perf_counter()
        replies = self._meter.sample(queues)
        calls = -(-len(queues) // QUEUES_PER_CALL)
        call_s = (perf_counter() - started_s) / max(1, calls)
        left_out = [reply for reply in replies.values() if isinstance(reply, ServerError)]
        samples = {name: s for name, s in replies.items() if not isinstance(s, ServerError)}
        if left_out and not samples:
            raise left_out[0]
        started_s = perf_counter()
        next_ids = {self._queues[name]: sample.next[::-1] for name, sample in samples.items()}
        # The nodes of a cluster started one by one.
        ages = next_ages(next_ids, None if self._connection.is_cluster else status.uptime_s)
        call_s = max(call_s, perf_counter() - started_s)
        self._count_taken(samples)
        now_s = self._clock.monotonic()
        if now_s >= self._written_until_s:
            self._written_until_s = now_s + _WRITTEN_EVERY_S
            self._written = last_waiting([self._queues[name] for name in samples], _WRITTEN)
        rows = [self._row(*pair, ages) for pair in samples.items()]
        return Overview(rows, status, left_out, call_s)

    def _row(self, name: bytes, sample: Sample, ages: Mapping[bytes, int]) -> QueueRow:
        counts = self._taken.get(name)
        history = [earlier.waiting for earlier in self._meter.samples[name]]
        if written := self._written.get(name):
            history = [*written, sample.waiting]
        row = QueueRow(
            name, sample, next_age_s=ages.get(name), rates=self._meter.rates(name), history=history
        )
        row = row._replace(**counts._asdict() if counts else {})
        if counts and not counts.is_least:
            row = row._replace(running=max(0, sample.processing - counts.abandoned))
        return row

    def _count_taken(self, samples: Mapping[bytes, Sample]) -> None:
        turn = {name: at for at, name in enumerate(self._taken)}
        room = _ENTRIES_PER_TICK
        counted: list[Queue] = []
        for name in sorted(samples, key=lambda name: turn.get(name, -1)):
            queue, entries = self._queues[name], samples[name].processing
            if not entries:
                self._taken[name] = Taken()
            elif queue.is_in_one_slot and room >= 0:
                room -= min(entries, PAGE_SIZE)
                counted += [queue] * (room >= 0)
        for queue, counts in zip(counted, count_taken(counted, within_s=_COUNT_S), strict=True):
            self._taken.pop(queue.name, None)
            self._taken[queue.name] = counts if isinstance(counts, Taken) else None
