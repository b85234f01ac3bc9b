"""The history of a queue: what whoever cleans it wrote down each minute, and each hour."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise
from math import inf
from typing import Any, NamedTuple

from rwq_cli.core.errors import PermissionDenied, ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.server.commands import Command

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
# How many entries are kept: a little more than a day, and a hundred days; some 100 bytes each.
MINUTES_MAX, HOURS_MAX = 1_500, 2_400
_PAGE = 1_000


class HistoryEntry(NamedTuple):
    """The counts of a queue at one minute; None for what is unknown.

    Attributes:
        abandoned: How many items were found abandoned since the entry before.
        done_per_minute: How many items were completed, removed or moved away a minute since then.
        next_age_s: About how long the next item had waited, seconds.
        next_id: The item that was leased next; None if none waited.
    """

    queue: bytes
    at_ms: int
    waiting: int
    processing: int
    abandoned: int
    delayed: int
    buried: int
    done_per_minute: float | None
    next_age_s: int | None
    next_id: bytes | None


def _entry(queue: bytes, entry_id: bytes, fields: Mapping[bytes, bytes]) -> HistoryEntry:
    done, age = fields.get(b"done"), fields.get(b"age")

    def count(name: bytes) -> int:
        return int(fields.get(name, 0))

    return HistoryEntry(
        queue,
        int(entry_id.partition(b"-")[0]),
        waiting=count(b"waiting"),
        processing=count(b"processing"),
        abandoned=count(b"abandoned"),
        delayed=count(b"delayed"),
        buried=count(b"buried"),
        done_per_minute=float(done) if done else None,
        next_age_s=int(age) if age else None,
        next_id=fields.get(b"next") or None,
    )


def read_history(queue: Queue, since_ms: int) -> Iterator[HistoryEntry]:
    """The entries since then, the oldest first: those of hours, and of minutes where there are."""
    keys = queue.keys
    first = queue.call("XRANGE", keys.history, "-", "+", "COUNT", 1)
    minutes_ms = int(first[0][0].partition(b"-")[0]) if first else inf
    for entry in _stream(queue, keys.history_hours, since_ms):
        if entry.at_ms < minutes_ms:
            yield entry
    yield from _stream(queue, keys.history, since_ms)


def copy_history(queue: Queue, to: Queue) -> None:
    """Begin the history of a queue that has none with that of another, where the user may."""
    keys = (queue.keys.history, queue.keys.history_hours)
    copies = (to.keys.history, to.keys.history_hours)
    try:
        if not any(histories := queue.call_all([("XRANGE", key, "-", "+") for key in keys])):
            return
        exist = to.call_all([("EXISTS", copy) for copy in copies])
        for copy, entries, has_one in zip(copies, histories, exist, strict=True):
            commands = [("XADD", copy, at, *chain(*fields.items())) for at, fields in entries]
            # At once: a cleaner that writes an entry of now would leave no place for the rest.
            to.call_all([] if has_one else commands, atomic=True)
    except PermissionDenied as error:
        queue.connection.tell(f"the history is not copied: {error.message}", "history")


def in_steps(entries: Iterable[HistoryEntry], step_ms: int) -> Iterator[HistoryEntry]:
    """An entry for each step that has some: the highest count of each state, the mean of what was
    done, and the next item of the last; for 0, the entries as they are."""
    if not step_ms:
        yield from entries
        return
    for first_ms, group in groupby(entries, lambda entry: entry.at_ms // step_ms * step_ms):
        step = list(group)
        done = [e.done_per_minute for e in step if e.done_per_minute is not None]
        ages = [entry.next_age_s for entry in step if entry.next_age_s is not None]
        yield step[-1]._replace(
            at_ms=first_ms,
            waiting=max(entry.waiting for entry in step),
            processing=max(entry.processing for entry in step),
            abandoned=sum(entry.abandoned for entry in step),
            delayed=max(entry.delayed for entry in step),
            buried=max(entry.buried for entry in step),
            done_per_minute=sum(done) / len(done) if done else None,
            next_age_s=max(ages, default=None),
        )


def _stream(queue: Queue, key: bytes, since_ms: int) -> Iterator[HistoryEntry]:
    start = b"%d-0" % since_ms
    while page := queue.call("XRANGE", key, start, "+", "COUNT", _PAGE):
        for entry_id, fields in page:
            yield _entry(queue.name, entry_id, fields)
        start = b"(" + page[-1][0]


def last_waiting(queues: Iterable[Queue], count: int) -> dict[bytes, list[int]]:
    """How many items waited at the last so many minutes of queues on one connection, by name."""
    wanted = list(queues)
    if not wanted:
        return {}
    commands: list[Command] = [
        ("XREVRANGE", queue.keys.history, "+", "-", "COUNT", count) for queue in wanted
    ]
    replies = wanted[0].connection.root.call_all(commands, return_errors=True)
    return {
        queue.name: [_entry(queue.name, *pair).waiting for pair in reversed(reply)]
        for queue, reply in zip(wanted, replies, strict=True)
        if not isinstance(reply, ServerError)
    }


def stalled_s(queue: Queue) -> int | None:
    """For how long the next item had been the same, and nothing was done, at the last entry of the
    last hour, seconds; None if there is none."""
    (seconds, _), next_id, page = queue.call_all(
        [
            ("TIME",),
            ("LINDEX", queue.keys.main, -1),
            ("XREVRANGE", queue.keys.history, "+", "-", "COUNT", MINUTES_MAX),
        ]
    )
    entries = [_entry(queue.name, *pair) for pair in page]
    if not entries or int(seconds) * 1000 - entries[0].at_ms > HOUR_MS:
        # Nobody writes it any more.
        return None
    since_ms = entries[0].at_ms
    for entry, before in pairwise([*entries, None]):
        if entry is None or entry.next_id is None or entry.next_id != next_id:
            break
        since_ms = entry.at_ms
        if entry.done_per_minute != 0 or before is None:
            # Something was done since the entry before.
            break
    return (entries[0].at_ms - since_ms) // 1000


class HistoryWriter:
    """Writes the history of queues that this process cleans, once a minute at most.

    Args:
        done: How many items of each queue were done since this process began, by name.
    """

    def __init__(self, done: Callable[[], Mapping[bytes, int]]) -> None:
        self._done = done
        self._due_s: dict[bytes, float] = {}
        # When the last entry was written, and the items done by then.
        self._last: dict[bytes, tuple[float, int]] = {}
        # What was found since an entry of its own: another cleaner may have written those between.
        self._abandoned = defaultdict[bytes, int](int)

    def note_clean(
        self, queue: Queue, abandoned: int, release: Callable[[Command], Sequence[Any]]
    ) -> None:
        """Note the end of a clean, and write an entry if it is time.

        Args:
            abandoned: How many items it found abandoned.
            release: As `QueueLock.release`, of the lock that it still has.
        """
        name, now_s = queue.name, queue.clock.monotonic()
        self._abandoned[name] += abandoned
        if now_s < self._due_s.get(name, 0.0):
            return
        total = self._done().get(name)
        last_s, last_total = self._last.setdefault(name, (now_s, 0))
        done = ""
        if total is not None and now_s > last_s:
            done = f"{60 * (total - last_total) / (now_s - last_s):.6g}"
        (reply,) = release(
            queue.script(
                "note_history",
                abandoned=self._abandoned[name],
                done=done,
                minutes_max=MINUTES_MAX,
                hours_max=HOURS_MAX,
            )
        )
        if isinstance(reply, ServerError):
            if reply.is_transient:
                return
            queue.connection.tell(f"no history is written: {reply.message}", "history")
            reply = HOUR_MS, False
        left_ms, is_written = reply
        if is_written:
            self._abandoned[name] = 0
        if total is not None:
            self._last[name] = now_s, total
        self._due_s[name] = now_s + left_ms / 1000
