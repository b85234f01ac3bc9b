"""How fast queues fill and drain, from samples of their lengths.

The server counts neither what is added nor what is completed. But a push changes only the left end
of main, so the place of the ID that was the newest in the last sample is the number of pushes
since. The rest follows from the lengths.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue

# How far from the left end of main the last sample's newest IDs are looked for, in entries: 0.1 ms
# of the server's time for each that is not there.
PUSHES_MAX = 10_000
# How many of them, because the newest may have been removed.
_NEWEST = 2
# For each queue, one transaction has up to nine commands.
QUEUES_PER_CALL = 50
# Samples that a rate is measured over, and those that are kept.
_RATE_SAMPLES = 6
HISTORY_SAMPLES = 60


class Sample(NamedTuple):
    """A queue at one instant."""

    # On the client's monotonic clock.
    at_s: float
    waiting: int
    processing: int
    delayed: int
    buried: int
    # The IDs that were pushed last, the last one first; and the ID that is leased next.
    newest: Sequence[bytes]
    next: bytes | None
    # How many IDs were pushed onto main since the last sample, None if there is none; and whether
    # there may have been more, because the newest IDs were not found.
    pushed: int | None
    is_least: bool

    @property
    def total(self) -> int:
        """Everything in the queue."""
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


UNKNOWN_RATES = Rates()


class RateMeter:
    """Measures the rates of queues over the last few readings."""

    def __init__(self) -> None:
        self._activities: dict[bytes, Activity] = {}

    def read(self, queues: Iterable[Queue]) -> dict[bytes, Rates]:
        """The rates by the names of the queues; unknown at the first reading of a queue.

        A queue that has a key of the wrong type has none.
        """
        for name, sample in read_samples(list(queues), last_of(self._activities)).items():
            if isinstance(sample, Sample):
                self._activities.setdefault(name, Activity()).add(sample)
        return {name: each.rates() for name, each in self._activities.items()}


class Activity:
    """The last samples of one queue, and what they say."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=HISTORY_SAMPLES)

    def add(self, sample: Sample) -> None:
        """Add the next sample."""
        self._samples.append(sample)

    @property
    def last(self) -> Sample | None:
        """The latest sample; None for none."""
        return self._samples[-1] if self._samples else None

    @property
    def waiting(self) -> list[int]:
        """How many items waited in each sample, the latest last."""
        return [sample.waiting for sample in self._samples]

    @property
    def is_idle(self) -> bool:
        """Whether the queue was empty in every sample."""
        return not any(sample.total for sample in self._samples)

    def rates(self) -> Rates:
        """The rates over the last few samples."""
        recent = list(self._samples)[-_RATE_SAMPLES:]
        if len(recent) < 2:
            return UNKNOWN_RATES
        first, last = recent[0], recent[-1]
        # A clock that stands still gives no rate.
        passed_s = max(last.at_s - first.at_s, 1e-3)
        entered = left = 0
        for before, after in pairwise(recent):
            came = _arrivals(before, after)
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


def last_of(activities: Mapping[bytes, Activity]) -> dict[bytes, Sample]:
    """The latest samples by the names of the queues."""
    return {name: each.last for name, each in activities.items() if each.last is not None}


def _arrivals(before: Sample, after: Sample) -> int:
    """How many IDs came into a queue between two samples.

    What is promoted or kicked is pushed, too, but comes from the queue itself.
    """
    pushed = after.pushed or 0
    delayed, buried = after.delayed - before.delayed, after.buried - before.buried
    return max(0, pushed + delayed + min(0, buried))


def read_samples(
    queues: Sequence[Queue], last: Mapping[bytes, Sample]
) -> dict[bytes, Sample | ServerError]:
    """Sample queues, each at one instant, in the same time for queues of any length.

    Queues of a cluster are sampled by commands in sequence. The queues are on one connection;
    `last` has the last sample of each by its name, and what is returned the next one, or why it
    could not be sampled.
    """
    found: dict[bytes, Sample | ServerError] = {}
    for at in range(0, len(queues), QUEUES_PER_CALL):
        group = queues[at : at + QUEUES_PER_CALL]
        commands = [_commands(queue, last.get(queue.name)) for queue in group]
        connection = group[0].connection.root
        replies = iter(
            connection.call_all(
                [command for each in commands for command in each],
                atomic=not connection.is_cluster,
                return_errors=True,
            )
        )
        at_s = group[0].clock.monotonic()
        for queue, each in zip(group, commands, strict=True):
            own = [next(replies) for _ in each]
            found[queue.name] = _sample(own, last.get(queue.name), at_s)
    return found


def _commands(queue: Queue, last: Sample | None) -> list[tuple[Any, ...]]:
    keys = queue.keys
    commands: list[tuple[Any, ...]] = [
        ("LLEN", keys.main),
        ("LLEN", keys.processing),
        ("ZCARD", keys.delayed),
        ("ZCARD", keys.buried),
        ("LINDEX", keys.main, -1),
        *(("LINDEX", keys.main, place) for place in range(_NEWEST)),
    ]
    if last is not None:
        commands += [("LPOS", keys.main, each, "MAXLEN", PUSHES_MAX) for each in last.newest]
    return commands


def _sample(replies: Sequence[Any], last: Sample | None, at_s: float) -> Sample | ServerError:
    for reply in replies:
        if isinstance(reply, ServerError):
            return reply
    waiting, processing, delayed, buried, following, *rest = replies
    newest, places = [each for each in rest[:_NEWEST] if each is not None], rest[_NEWEST:]
    # If a newer ID is gone, what is before the next one was pushed since, too.
    pushed: int | None = next((place for place in places if place is not None), None)
    is_least = False
    if pushed is None and last is not None:
        is_least = True
        # As many as main has grown, and as have gone on to processing.
        pushed = max(0, waiting - last.waiting + max(0, processing - last.processing))
        if last.waiting <= PUSHES_MAX and following != last.next:
            # Everything that waited has been leased, so what waits now came later.
            pushed = max(pushed, min(waiting, PUSHES_MAX))
    return Sample(at_s, waiting, processing, delayed, buried, newest, following, pushed, is_least)
