"""How many items are added to queues, and how many are done: completed, removed or moved away.

An item exists while its data key does. The server names each data key that was set or deleted, by
whomever; those that are gone a moment later are of items that are done. How many were added follows
from the lengths. Both are exact over time: what is between two steps of a worker when a queue is
looked at, such as an item that is deleted and still listed, is counted at the next look.
"""

import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from threading import Event
from typing import Any, NamedTuple

from rwq_cli.core.batches import in_batches
from rwq_cli.core.errors import ServerError, text_of
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.counting import length_commands
from rwq_cli.core.inspect.following import Followed, Follower
from rwq_cli.core.inspect.queues import NEXT_ENTRIES
from rwq_cli.core.server.commands import Command
from rwq_cli.core.server.connection import Connection
from rwq_cli.core.server.tracking import Tracker

# Each queue has a few commands.
QUEUES_PER_CALL = 50
# Samples that are kept, and those over which a queue is seen to shrink.
HISTORY_SAMPLES = 60
_SHRINKING_SAMPLES = 6
_INFIX = b":item:"
_DATABASE = re.compile(rb"^db(\d+):", re.M)
# How often `ItemTotals` looks, seconds: what changes meanwhile is kept in memory.
_TOTALS_EVERY_S = 3.0


class Sample(NamedTuple):
    """A queue at one instant.

    Attributes:
        at_s: When it was sampled, on the client's monotonic clock.
        next: The IDs that are leased next, the first one last.
        done: How many items are done since the last sample; None if unknown.
        added: How many were added since then; None if unknown.
    """

    at_s: float
    waiting: int
    processing: int
    delayed: int
    buried: int
    next: Sequence[bytes] = ()
    done: int | None = None
    added: int | None = None

    @property
    def total(self) -> int:
        return self.waiting + self.processing + self.delayed + self.buried


class Rates(NamedTuple):
    """How fast a queue fills and drains; None for what is unknown.

    Attributes:
        added_per_s: Items added a second.
        done_per_s: Items completed, removed or moved away a second.
        empty_in_s: Until nothing waits any more, at these rates; also None if it does not shrink.
    """

    added_per_s: float | None = None
    done_per_s: float | None = None
    empty_in_s: float | None = None


class RateMeter:
    """Samples queues again and again, and measures their rates over at least the last `span_s`."""

    def __init__(self, span_s: float = 0.0) -> None:
        self.samples = defaultdict[bytes, deque[Sample]](partial(deque, maxlen=HISTORY_SAMPLES))
        self._span_s = span_s
        self._follower = Follower([_INFIX], "rates are unknown")
        # By queue, by how much the items that were counted as added exceed those that were.
        self._excess = defaultdict[bytes, int](int)
        # Queues that another database has, too: the server names keys without their database.
        self._ambiguous: set[bytes] = set()

    def read(self, queues: Iterable[Queue]) -> dict[bytes, Rates]:
        """The rates by the names of the queues; none of one that has a key of the wrong type."""
        self.sample(list(queues))
        return {name: self.rates(name) for name in self.samples}

    def sample(self, queues: Sequence[Queue]) -> dict[bytes, Sample | ServerError]:
        """Sample queues on one connection. One that could not be sampled has the reason."""
        samples: dict[bytes, Sample | ServerError] = {}
        for group in self._follower.by_server(queues):
            try:
                samples |= self._follower.reading(group, self._sample_server)
            except ServerError as error:
                samples |= dict.fromkeys((queue.name for queue in group), error)
        for name, sample in samples.items():
            if isinstance(sample, Sample):
                self.samples[name].append(sample)
        return {queue.name: samples[queue.name] for queue in queues}

    def _sample_server(self, followed: Followed) -> dict[bytes, Sample | ServerError]:
        queues, tracker, is_fresh = followed
        # The data keys that are gone; None if not all changes were seen.
        gone: list[bytes] | None = None
        call_all: Callable[[Sequence[Command]], list[Any]]
        if tracker is None:
            call_all = partial(queues[0].connection.root.call_all, return_errors=True)
        else:
            call_all = tracker.call_all
            self._find_namesakes(queues, tracker)
            changes = tracker.take()
            if not (is_fresh or changes.missed or changes.has_flushed):
                keys = list(changes.keys)
                exist = call_all([("EXISTS", key) for key in keys]) if keys else []
                gone = [key for key, exists in zip(keys, exist, strict=True) if exists == 0]
        replies: list[Any] = []
        for group in in_batches(queues, items_max=QUEUES_PER_CALL):
            replies += call_all([command for queue in group for command in _commands(queue)])
        if tracker is not None and gone:
            # Their deletion may have been read only now: after the reply to EXISTS.
            tracker.forget(gone)
        at_s = queues[0].clock.monotonic()
        done = Counter(key.partition(_INFIX)[0] for key in gone or ())
        unknown = {queue.name for queue in queues} if gone is None else self._ambiguous
        of_queues = in_batches(replies, items_max=len(_commands(queues[0])))
        return {
            queue.name: self._sample(
                queue.name, fields, at_s, None if queue.name in unknown else done[queue.name]
            )
            for queue, fields in zip(queues, of_queues, strict=True)
        }

    def _find_namesakes(self, queues: Sequence[Queue], tracker: Tracker) -> None:
        """Look for the queues in other databases; what has changed until now has been read then."""
        (keyspace,) = tracker.call_all([("INFO", "keyspace")])
        databases = [] if isinstance(keyspace, ServerError) else _DATABASE.findall(keyspace)
        for database in [int(number) for number in databases if int(number) != tracker.database]:
            keys = [("EXISTS", *queue.keys.structures) for queue in queues]
            commands = [("SELECT", database), *keys, ("SELECT", tracker.database)]
            selected, *exist, _ = tracker.call_all(commands)
            namesakes = {queue.name for queue, exists in zip(queues, exist, strict=True) if exists}
            if isinstance(selected, ServerError) or namesakes <= self._ambiguous:
                continue
            self._ambiguous |= namesakes
            names = ", ".join(sorted(map(text_of, namesakes)))
            queues[0].connection.tell(
                f"database {database} has {names}, too: rates are unknown, as the server does not "
                "say whose keys change",
                "namesakes",
            )

    def _sample(
        self, name: bytes, replies: Sequence[Any], at_s: float, done: int | None
    ) -> Sample | ServerError:
        refusal = next((reply for reply in replies if isinstance(reply, ServerError)), None)
        if refusal is not None:
            return refusal
        sample = Sample(at_s, *replies)
        last = next(reversed(self.samples.get(name, ())), None)
        if last is None or done is None:
            self._excess.pop(name, None)
            return sample
        added = done + sample.total - last.total - self._excess[name]
        # What is removed in two steps seems to be added at the first, and less so at the second.
        self._excess[name] = max(0, -added)
        return sample._replace(done=done, added=max(0, added))

    def rates(self, name: bytes) -> Rates:
        """The rates of a queue that was sampled."""
        samples = list(self.samples[name])
        if len(samples) < 2:
            return Rates()
        last = samples[-1]
        old_enough = [s.at_s <= last.at_s - self._span_s for s in samples[:-1]]
        first = max(0, old_enough.count(True) - 1)
        span_s = _between(samples[first], last)

        def per_second(counts: Sequence[int | None]) -> float | None:
            return None if None in counts else sum(filter(None, counts)) / span_s

        before = samples[-_SHRINKING_SAMPLES:][0]
        drained_per_s = (before.waiting - last.waiting) / _between(before, last)
        return Rates(
            per_second([sample.added for sample in samples[first + 1 :]]),
            per_second([sample.done for sample in samples[first + 1 :]]),
            last.waiting / drained_per_s if drained_per_s > 0 and last.waiting else None,
        )

    def close(self) -> None:
        self._follower.close()


def _between(first: Sample, last: Sample) -> float:
    # A clock that stands still gives no rate.
    return max(last.at_s - first.at_s, 1e-3)


def _commands(queue: Queue) -> list[Command]:
    """The commands whose replies are the fields of a sample."""
    return [*length_commands(queue)[:4], ("LRANGE", queue.keys.main, -NEXT_ENTRIES, -1)]


class ItemTotals:
    """How many items were added and done since it was made, as far as they were seen.

    Attributes:
        by_queue: By name, the items added and those done; without the queues that are not followed.
    """

    def __init__(self, connection: Connection) -> None:
        # Another thread uses the caller's.
        self._connection = connection.for_other_thread(reply_timeout_s=connection.reply_timeout_s)
        self._meter = RateMeter()
        self.by_queue: dict[bytes, tuple[int, int]] = {}

    def done(self) -> dict[bytes, int]:
        """By name, the items done."""
        return {name: done for name, (_, done) in self.by_queue.copy().items()}

    def count(self, names: Callable[[], Iterable[bytes]], over: Event) -> None:
        """Count the items of these queues until it is over."""
        queues: dict[bytes, Queue] = {}
        while not over.is_set():
            queues = {n: queues.get(n) or Queue(self._connection, n) for n in list(names())}
            # Lost for a while, which a metric of the server tells.
            with suppress(ServerError):
                self._add(self._meter.sample(list(queues.values())))
            over.wait(_TOTALS_EVERY_S)
        self._meter.close()

    def _add(self, samples: Mapping[bytes, Sample | ServerError]) -> None:
        for name, sample in samples.items():
            if isinstance(sample, Sample) and sample.added is not None and sample.done is not None:
                added, done = self.by_queue.get(name, (0, 0))
                self.by_queue[name] = added + sample.added, done + sample.done
