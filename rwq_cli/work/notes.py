"""What a worker reports: any thread notes it, the main thread writes it."""

import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from threading import Event as Flag
from time import time
from typing import TYPE_CHECKING, NamedTuple

from rwq_cli.core.errors import InvalidArgument, ServerError
from rwq_cli.core.inspect.lookup import state
from rwq_cli.core.model import State
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.repair.clean import clean as clean_queue
from rwq_cli.core.work.job import Ended, Failure, Fate, GiveUp, Job, Loss
from rwq_cli.descriptors import write_all
from rwq_cli.environment import Environment, os_reason
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.work.running import Run

if TYPE_CHECKING:
    from rwq_cli.core.inspect.history import HistoryWriter

# The last line of a command's stderr is cut to this length; all of it is on stderr.
_LAST_LINE_MAX = 200
STARTED = "started"
_LOSSES = {
    Loss.TAKEN: b"another session holds the item",
    Loss.ENDED: b"the lease ended",
    Loss.MOVED: b"the item was delayed or buried meanwhile",
    Loss.GONE: b"the item was completed or removed meanwhile",
    Loss.WRONG_TYPE: b"something else has the data key or a lease key of the item",
    Loss.UNREACHABLE: b"the lease ended while the server did not answer, or refused to renew it",
    Loss.UNACKNOWLEDGED: b"the server did not say whether the end of the item has arrived",
}


class Event(NamedTuple):
    """Something that happened to an item, at this unix time: `STARTED`, or its fate.

    For an item without attempts left, `attempt` is the last one that was made. The process is known
    if one was started, and how it ended once it has. `has_backlog` is True for a retry before which
    other items will probably be taken.
    """

    at_s: float
    kind: str
    queue: bytes
    item_id: bytes
    attempt: int
    returns: int
    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    run_s: float | None = None
    reason: bytes | None = None
    delay_s: float | None = None
    gave_up: bool = False
    has_backlog: bool = False


def start_event(job: Job, run: Run) -> Event:
    return Event(time(), STARTED, job.queue, job.item_id, job.attempt, job.returns, run.pid)


def end_event(ended: Ended, run: Run | None) -> tuple[Event, bool]:
    """Return the event of an end that the server has acknowledged, and whether it is a failure."""
    job, fate, end = ended.job, ended.fate, ended.end
    reason = ended.step.data if end is None else None
    if fate is Fate.LOST:
        reason = _LOSSES[job.loss or Loss.ENDED]
    elif isinstance(end, Failure | GiveUp):
        reason = end.reason
    code = None if run is None else run.code
    event = Event(
        *(time(), fate.value, job.queue, job.item_id),
        job.attempt if end is not None else job.attempt - 1,
        job.returns,
        None if run is None else run.pid,
        exit_code=None if code is None or code < 0 else code,
        signal=None if code is None or code >= 0 else -code,
        run_s=None if run is None or code is None else run.run_s,
        reason=reason,
        delay_s=ended.step.delay_s if fate is Fate.RETRY else None,
        gave_up=ended.gave_up,
        has_backlog=fate is Fate.RETRY and _has_backlog(job),
    )
    is_own_doing = fate is Fate.LOST and code == 0 and _is_own_doing(job)
    return event, reason is not None and not is_own_doing


def _has_backlog(job: Job) -> bool:
    """Return True if items wait that will probably be taken before a retry."""
    with suppress(ServerError):
        return int(job.handle.call("LLEN", job.handle.keys.main)) > 0
    return False


def _is_own_doing(job: Job) -> bool:
    """Return True if a command that succeeded has ended its lease itself, as by `rwq release`."""
    if job.loss in (Loss.MOVED, Loss.GONE):
        return True
    if job.loss is not Loss.ENDED:
        return False
    # Then the item waits; a lease that has vanished leaves it in processing.
    with suppress(ServerError):
        return state(job.handle, job.item_id) in (State.WAITING, State.DELAYED, State.GONE)
    return False


class Progress:
    """The progress of a worker.

    `vanished` counts items that were lost, and not through their own commands. `left` is how many
    items wait; None if unknown.
    """

    def __init__(self) -> None:
        self.counts = dict.fromkeys(Fate, 0)
        self.gave_up = self.vanished = self.running = 0
        self.left: int | None = None
        self.is_paused = self.is_stopping = False


class Notes:
    """Failures, with the names of their queues if there are several, and other lines."""

    # How often `tick` is to be called, seconds; None for never.
    tick_s: float | None = None

    def __init__(self, environment: Environment, *, names_queues: bool) -> None:
        self._environment = environment
        self._names_queues = names_queues
        self.progress = Progress()
        # Each, and whether it is written with --quiet, too.
        self._lines: deque[tuple[str, bool]] = deque()
        # Set if the main thread has something to write, or else to do.
        self.news = Flag()

    def line(self, line: str, *, is_error: bool = True) -> None:
        self._lines.append((line, is_error))
        self.news.set()

    def write(self) -> None:
        while self._lines:
            line, is_error = self._lines.popleft()
            (self._environment.error if is_error else self._environment.note)(f"rwq: {line}")

    def tick(self) -> None:
        """Do what is due after `tick_s`."""

    def hide(self) -> None:
        """Hide what is shown: the terminal is about to belong to somebody else."""

    def failed(self, event: Event) -> None:
        """Note an item that was retried, given up, put back after its last attempt, or lost."""
        name = escaped(event.item_id)
        if self._names_queues:
            name += f" of {escaped(event.queue)}"
        reason, _, output = (event.reason or b"").partition(b": ")
        if last := output.rpartition(b"\n")[2][:_LAST_LINE_MAX]:
            reason += b": " + last
        self.line(f"{name}: {escaped(reason)}; {_fate(event)}")


def _fate(event: Event) -> str:
    if event.kind == Fate.RETRY:
        when = "not before" if event.has_backlog else "in"
        return f"attempt {event.attempt + 1:,} {when} {human.duration(event.delay_s)}"
    if event.kind == Fate.LOST:
        return "lost, not completed by this worker"
    return f"{event.kind} after attempt {event.attempt:,}" if event.gave_up else event.kind


def status(progress: Progress) -> str:
    """Return the status that supervisors show."""
    return f"{counted(progress)} · {progress.running:,} running"


def counted(progress: Progress) -> str:
    counts = progress.counts
    words = {Fate.COMPLETED: "done", Fate.RETRY: "retry", Fate.BURIED: "buried"}
    for kind in (Fate.REJECTED, Fate.RELEASED, Fate.LOST):
        if counts[kind]:
            words[kind] = kind.value
    return " · ".join(f"{counts[kind]:,} {word}" for kind, word in words.items())


class JobLog:
    """The job log, which workers may share; if writing it fails, it warns, and work continues."""

    def __init__(self, path: str, warn: Callable[[str], object]) -> None:
        self._path, self._warn = path, warn
        # True if a line could not be written, or not in full.
        self.is_incomplete = False
        try:
            self._fd = self._open()
        except OSError as error:
            reason = os_reason(error)
            raise InvalidArgument(f"cannot write the job log {path}: {reason}", "check --joblog")

    def _open(self) -> int:
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)

    def _follow(self) -> None:
        """Open the file anew if it has been renamed or removed, as logrotate does."""
        try:
            is_same = os.path.samestat(os.stat(self._path), os.fstat(self._fd))
        except FileNotFoundError:
            is_same = False
        if not is_same:
            os.close(self._fd)
            self._fd = self._open()

    def write(self, lines: Iterable[str]) -> None:
        for line in lines:
            try:
                self._follow()
                write_all(self._fd, f"{line}\n".encode("utf-8", "backslashreplace"))
            except OSError as error:
                if not self.is_incomplete:
                    self.is_incomplete = True
                    why = f"{os_reason(error)}; it is incomplete from now on"
                    self._warn(f"rwq: cannot write the job log {self._path}: {why}")

    def close(self) -> None:
        os.close(self._fd)


def clean(queues: Sequence[WorkQueue], notes: Notes, history: "HistoryWriter") -> None:
    """Do a light clean of each queue, noted in its history; one that fails is cleaned the next
    time."""
    for queue in queues:
        with suppress(ServerError):
            batches = clean_queue(queue, deep=False, history=history)
            if counts := Counter(action.action.value for action in chain.from_iterable(batches)):
                text = ", ".join(f"{repair} {number:,}" for repair, number in counts.items())
                notes.line(f"clean light: {text} ({escaped(queue.name)})", is_error=False)


def count(queues: Sequence[WorkQueue], notes: Notes) -> None:
    notes.progress.left = sum(queue.lengths().waiting for queue in queues)
