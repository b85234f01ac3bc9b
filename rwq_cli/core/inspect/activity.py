"""How fast queues fill and drain, from samples of their lengths, at a bounded cost to the server.

The server counts neither what is added nor what is completed. But a push changes only the left end
of main, so the place of the ID that was the newest in the last sample is the number of pushes
since. The rest follows from the lengths.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, islice, pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from rwq_cli.core.clock import Clock
from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.counting import Taken, count_taken, length_commands
from rwq_cli.core.inspect.cursor import PAGE_SIZE
from rwq_cli.core.inspect.queues import NEXT_ENTRIES, next_ages
from rwq_cli.core.inspect.server_status import ServerStatus, server_status
from rwq_cli.core.server.commands import Command

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection

# How far from the left end of main the last sample's newest IDs are looked for, in entries: 0.1 ms
# of the server's time for each that is not there.
PUSHES_MAX = 10_000
# How many of them, because the newest may have been removed.
_NEWEST = 2
# For each queue, one transaction has up to nine commands.
QUEUES_PER_CALL = 50
# Samples that a rate is measured over, and those that are kept.
_RATE_SAMPLES = 6
_HISTORY_SAMPLES = 60


class Sample(NamedTuple):
    # On the client's monotonic clock.
    at_s: float
    waiting: int
    processing: int
    delayed: int
    buried: int
    # The IDs that were pushed last, the last one first; and those that are leased next, the first
    # one last.
    newest: Sequence[bytes]
    next: Sequence[bytes]
    # How many IDs were pushed onto main since the last sample, None if there is none; and whether
    # there may have been more, because the newest IDs were not found.
    pushed: int | None
    is_least: bool

    @property
    def total(self) -> int:
        return self.waiting + self.processing + self.delayed + self.buried


class Rates(NamedTuple):
    """How fast a queue fills and drains; None for what is unknown."""

    # IDs that were added or returned, and IDs that left the queue or were returned.
    in_per_s: float | None = None
    left_per_s: float | None = None
    # Whether both may be higher.
    is_least: bool = False
    # Until nothing waits any more, at these rates; also None if the queue does not shrink.
    empty_in_s: float | None = None


class RateMeter:
    """Samples queues again and again, and measures their rates over the last few samples."""

    def __init__(self) -> None:
        self.samples = defaultdict[bytes, deque[Sample]](partial(deque, maxlen=_HISTORY_SAMPLES))

    def read(self, queues: Iterable[Queue]) -> dict[bytes, Rates]:
        """The rates by the names of the queues; none of one that has a key of the wrong type."""
        self.sample(list(queues))
        return {name: self.rates(name) for name in self.samples}

    def sample(self, queues: Sequence[Queue]) -> dict[bytes, Sample | ServerError]:
        """Sample queues on one connection, each at one instant (those of a cluster by commands in
        sequence). One that could not be sampled has the reason."""
        found: dict[bytes, Sample | ServerError] = {}
        for at in range(0, len(queues), QUEUES_PER_CALL):
            group = queues[at : at + QUEUES_PER_CALL]
            last = [next(reversed(self.samples.get(queue.name, ())), None) for queue in group]
            commands = list(map(_commands, group, last))
            connection = group[0].connection.root
            atomic, flat = not connection.is_cluster, chain.from_iterable(commands)
            replies = iter(connection.call_all(flat, atomic=atomic, return_errors=True))
            at_s = group[0].clock.monotonic()
            for queue, before, each in zip(group, last, commands, strict=True):
                sample = _sample(list(islice(replies, len(each))), before, at_s)
                found[queue.name] = sample
                if isinstance(sample, Sample):
                    self.samples[queue.name].append(sample)
        return found

    def rates(self, name: bytes) -> Rates:
        recent = list(self.samples[name])[-_RATE_SAMPLES:]
        if len(recent) < 2:
            return Rates()
        first, last = recent[0], recent[-1]
        # A clock that stands still gives no rate.
        passed_s = max(last.at_s - first.at_s, 1e-3)
        entered = left = 0
        for before, after in pairwise(recent):
            # What is promoted or kicked is pushed, too, but comes from the queue itself.
            delayed, buried = after.delayed - before.delayed, after.buried - before.buried
            came = max(0, (after.pushed or 0) + delayed + min(0, buried))
            entered += came
            left += max(0, came - (after.total - before.total))
        drained_per_s = (first.waiting - last.waiting) / passed_s
        is_least = any(sample.is_least for sample in recent[1:])
        # Nothing was seen, and nothing is known.
        is_unknown = is_least and not (entered or left)
        return Rates(
            None if is_unknown else entered / passed_s,
            None if is_unknown else left / passed_s,
            is_least,
            last.waiting / drained_per_s if drained_per_s > 0 and last.waiting else None,
        )


def _commands(queue: Queue, last: Sample | None) -> list[Command]:
    main = queue.keys.main
    return [
        *length_commands(queue)[:4],
        ("LRANGE", main, -NEXT_ENTRIES, -1),
        ("LRANGE", main, 0, _NEWEST - 1),
        *(("LPOS", main, each, "MAXLEN", PUSHES_MAX) for each in (last.newest if last else ())),
    ]


def _sample(replies: Sequence[Any], last: Sample | None, at_s: float) -> Sample | ServerError:
    if refused := [reply for reply in replies if isinstance(reply, ServerError)]:
        return refused[0]
    waiting, processing, delayed, buried, following, newest, *places = replies
    # If a newer ID is gone, what is before the next one was pushed since, too.
    pushed: int | None = next((place for place in places if place is not None), None)
    is_least = False
    if pushed is None and last is not None:
        is_least = True
        # As many as main has grown, and as have gone on to processing.
        pushed = max(0, waiting - last.waiting + max(0, processing - last.processing))
        if last.waiting <= PUSHES_MAX and following[-1:] != last.next[-1:]:
            # Everything that waited has been leased, so what waits now came later.
            pushed = max(pushed, min(waiting, PUSHES_MAX))
    return Sample(at_s, waiting, processing, delayed, buried, newest, following, pushed, is_least)


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


class QueueRow(NamedTuple):
    """What is known of a queue; None for what is unknown."""

    queue: bytes
    sample: Sample
    # In processing, what is not abandoned and what is; whether there may be more of both.
    running: int | None = None
    abandoned: int | None = None
    is_least: bool = False
    # About how long the next item has waited.
    next_age_s: int | None = None
    rates: Rates = Rates()
    # How many items waited in the last samples, the latest last.
    history: Sequence[int] = ()


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
        self, connection: "Connection", names: Iterable[bytes], clock: Clock | None = None
    ) -> None:
        self._connection = connection
        self._clock = clock or Clock()
        self._queues: dict[bytes, Queue] = {}
        self._meter = RateMeter()
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

    def tick(self) -> Overview:
        queues = [self._queues[name] for name in sorted(self._queues)]
        status = server_status(self._connection)
        started_s = perf_counter()
        found = self._meter.sample(queues)
        calls = -(-len(queues) // QUEUES_PER_CALL)
        call_s = (perf_counter() - started_s) / max(1, calls)
        left_out = [each for each in found.values() if isinstance(each, ServerError)]
        samples = {n: each for n, each in found.items() if not isinstance(each, ServerError)}
        if left_out and not samples:
            raise left_out[0]
        started_s = perf_counter()
        ages = next_ages({self._queues[n]: each.next[::-1] for n, each in samples.items()})
        call_s = max(call_s, perf_counter() - started_s)
        self._count_taken(samples)
        rows = []
        for name, sample in samples.items():
            taken, rates = self._taken.get(name), self._meter.rates(name)
            history = [each.waiting for each in self._meter.samples[name]]
            row = QueueRow(name, sample, next_age_s=ages.get(name), rates=rates, history=history)
            row = row._replace(**taken._asdict() if taken else {})
            if taken and not taken.is_least:
                row = row._replace(running=max(0, sample.processing - taken.abandoned))
            rows.append(row)
        return Overview(rows, status, left_out, call_s)

    def _count_taken(self, samples: Mapping[bytes, Sample]) -> None:
        turn = {name: at for at, name in enumerate(self._taken)}
        room = _ENTRIES_PER_TICK
        chosen: list[Queue] = []
        for name in sorted(samples, key=lambda name: turn.get(name, -1)):
            queue, entries = self._queues[name], samples[name].processing
            if not entries:
                self._taken[name] = Taken()
            elif queue.is_in_one_slot and room >= 0:
                room -= min(entries, PAGE_SIZE)
                chosen += [queue] * (room >= 0)
        for queue, each in zip(chosen, count_taken(chosen, within_s=_COUNT_S), strict=True):
            self._taken.pop(queue.name, None)
            self._taken[queue.name] = each if isinstance(each, Taken) else None
