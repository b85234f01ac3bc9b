"""A worker that runs commands: the loop in one thread, signals in one, and what the main one does.

The main thread alone writes what has happened. So nobody who reads slowly, and no terminal that is
stopped, holds up the loop or a signal.
"""

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from enum import IntEnum
from threading import Event as Flag, Thread, Timer

from rwq_cli.core.errors import ServerError
from rwq_cli.core.inspect.report import state
from rwq_cli.core.model import State
from rwq_cli.core.work.control import (
    Contact,
    EndReason,
    Failed,
    Lost,
    Outage,
    StopToken,
    WorkEvent,
    WorkSummary,
)
from rwq_cli.core.work.job import Ended, Job, Loss
from rwq_cli.core.work.policy import Failure, Fate, GiveUp
from rwq_cli.output.escape import escaped_text
from rwq_cli.service.supervision import Supervision
from rwq_cli.work.commands import CommandLimits, Commands, EndWorker
from rwq_cli.work.events import Event, EventKind, Exit, Progress
from rwq_cli.work.invocations import Invocations
from rwq_cli.work.leftover_commands import watch_leftovers
from rwq_cli.work.notes import Notes, status
from rwq_cli.work.output import Outputs
from rwq_cli.work.programs import occupy_standard_files
from rwq_cli.work.signals import handled_signals

# How often the main thread looks for news, and how often it shows that it is not stuck.
_LOOK_S, _BEAT_S = 0.1, 5.0
# With more events that nobody has read, nothing is taken.
_UNREAD_MAX = 1000
# How long a killed worker waits for the server to take its items back.
_LAST_CALL_S = 3.0

_LOSSES = {
    Loss.TAKEN: b"another session holds the item",
    Loss.ENDED: b"the lease ended",
    Loss.MOVED: b"the item was delayed or buried meanwhile",
    Loss.GONE: b"the item was completed or removed meanwhile",
    Loss.WRONG_TYPE: b"something else has the data key or a lease key of the item",
    Loss.UNREACHABLE: b"the lease ended while the server did not answer",
}


class _Stage(IntEnum):
    """How far a worker is on its way to its end."""

    WORKING = 0
    STOPPING = 1  # takes no more, finishes what runs
    ENDING = 2  # has sent SIGTERM to what runs, and releases its items
    KILLING = 3  # has sent SIGKILL


class Worker:
    """Runs commands until it is to end; iterate over `events`.

    `work` is `WorkQueue.work` with all its options but the function, the token and the listener;
    `housekeeping` is `keep_house` with its options but the flag and the listeners.
    """

    def __init__(
        self,
        work: Callable[..., WorkSummary],
        invocations: Invocations,
        outputs: Outputs,
        limits: CommandLimits,
        notes: Notes,
        supervision: Supervision,
        housekeeping: Callable[..., None] | None = None,
        *,
        yields_starts: bool = True,
    ) -> None:
        self._work = work
        self._mark = invocations.mark
        self._limits = limits
        self._notes = notes
        self._supervision = supervision
        self._housekeeping = housekeeping
        self.progress = Progress()
        self._summary: WorkSummary | None = None
        self._stop = StopToken()
        self._stage = _Stage.WORKING
        # That nobody has read.
        self._events: deque[Event] = deque()
        self._commands = Commands(
            invocations,
            outputs,
            limits,
            self.progress,
            notes,
            self._may_begin,
            self._events.append if yields_starts else None,
        )
        self._ended = Flag()
        self._failure: BaseException | None = None
        self._is_abandoned = self._is_continued = self._is_paused = False
        self._has_contact = self._is_out = False

    @property
    def has_failed(self) -> bool:
        """Whether items were given up or lost, or failures ended the worker."""
        why = None if self._summary is None else self._summary.why
        is_over = why is EndReason.MAX_FAILURES
        return is_over or self.progress.gave_up > 0 or self.progress.vanished > 0

    # The main thread.

    def events(self) -> Iterator[Sequence[Event]]:
        """Work; yields what happened. KeyboardInterrupt means that signals ended the commands."""
        occupy_standard_files()
        watch = watch_leftovers(self._mark, self._limits.kill_after_s)
        worker = Thread(target=self._run_loop, name="rwq-work", daemon=True)
        try:
            with handled_signals(self._handle) as self._look_for_signals:
                worker.start()
                if self._housekeeping is not None:
                    Thread(target=self._keep_house, name="rwq-house", daemon=True).start()
                yield from self._report(worker)
        finally:
            self._ended.set()
            for run in self._commands.runs:
                run.kill()
            self._notes.hide()
            if watch is not None:
                watch.close()
        if self._failure is not None:
            raise self._failure
        if self._stage >= _Stage.ENDING:
            raise KeyboardInterrupt

    def _report(self, worker: Thread) -> Iterator[Sequence[Event]]:
        """Yield events, and do what the main thread has to, until the loop has ended."""
        beats_s = ticks_s = 0.0
        while True:
            is_over = self._is_abandoned or not worker.is_alive()
            self._notes.news.clear()
            self._notes.write()
            if self._is_continued:
                self._resume()
            if events := [self._events.popleft() for _ in range(len(self._events))]:
                yield events
                self._follow_pause()
            if is_over:
                return
            self.progress.is_paused = self._is_paused
            self.progress.is_stopping = self._stage >= _Stage.STOPPING
            now_s = time.monotonic()
            if self._notes.tick_s is not None and now_s >= ticks_s:
                ticks_s = now_s + self._notes.tick_s
                self._notes.tick(self.progress)
            if now_s >= beats_s:
                beats_s = now_s + _BEAT_S
                self._supervision.beat(_BEAT_S)
                if self._has_contact and not self._is_out:
                    self._supervision.status(status(self.progress))
            if os.getpid() == 1:
                self._commands.reap_orphans()
            self._notes.news.wait(_LOOK_S)

    # The threads of the loop and of the housekeeping.

    def _run_loop(self) -> None:
        try:
            self._summary = self._work(self._commands, stop=self._stop, on_event=self._note)
        except EndWorker as end:
            self._failure = end.error
        except BaseException as error:
            self._failure = error
        self._notes.news.set()
        if self._stage >= _Stage.ENDING:
            # The reader of stdout may have stalled.
            self._after(_LAST_CALL_S, lambda: os._exit(128 + signal.SIGINT))

    def _keep_house(self) -> None:
        assert self._housekeeping is not None

        def counted(waiting: int) -> None:
            self.progress.left = waiting

        try:
            self._housekeeping(self._ended, cleaned=self._notes.cleaned, counted=counted)
        except BaseException as error:
            self._fail(error)

    def _after(self, seconds: float, what: Callable[[], object]) -> None:
        def guarded() -> None:
            try:
                what()
            except BaseException as error:
                self._fail(error)

        timer = Timer(seconds, guarded)
        timer.daemon = True
        timer.start()

    def _fail(self, error: BaseException) -> None:
        """End with this error, and with all commands: nothing goes on half alive."""
        self._failure = self._failure or error
        self._stop.set()
        self._commands.end_all()

    # The thread of the signals.

    def _handle(self, number: int) -> None:
        try:
            if number in (signal.SIGINT, signal.SIGTERM):
                self._advance(_Stage(min(self._stage + 1, _Stage.KILLING)))
            elif number in (signal.SIGUSR1, signal.SIGUSR2):
                self._is_paused = number == signal.SIGUSR1
                self._follow_pause()
            elif number == signal.SIGHUP:
                self._stop.drain()
            elif number == signal.SIGTSTP:
                self._suspend()
        except BaseException as error:
            self._fail(error)

    def _advance(self, stage: _Stage) -> None:
        if stage <= self._stage:
            return
        self._stage = stage
        # One that is being started may have sent the signal.
        running = self._commands.running
        if stage is _Stage.STOPPING:
            self._stop.set()
            self._supervision.stopping()
            if self._limits.grace_s is not None:
                self._after(self._limits.grace_s, lambda: self._advance(_Stage.ENDING))
            self._notes.stopping(running)
        elif stage is _Stage.ENDING:
            self._stop.set()
            self._commands.end_all()
            self._notes.ending(running)
        else:
            for run in self._commands.runs:
                run.kill()
            self._after(_LAST_CALL_S, self._abandon)

    def _abandon(self) -> None:
        """End without waiting for commands, the server, or the reader of stdout."""
        release = Thread(target=self._stop.release, daemon=True)
        release.start()
        # So that the summary has it, if the server answers.
        release.join(_LAST_CALL_S / 3)
        self._is_abandoned = True
        self._notes.news.set()
        time.sleep(_LAST_CALL_S / 3)
        os._exit(128 + signal.SIGINT)

    def _follow_pause(self) -> None:
        self._stop.pause(is_paused=self._is_paused or len(self._events) > _UNREAD_MAX)

    def _suspend(self) -> None:
        """Ctrl-Z: stop the commands, and then this process, until it is continued."""
        self._notes.hide()
        for run in self._commands.runs:
            # SIGTSTP does not stop what has no terminal.
            run.send(signal.SIGSTOP)
        began_s = time.monotonic()
        os.kill(os.getpid(), signal.SIGSTOP)
        for run in self._commands.runs:
            run.shift(time.monotonic() - began_s)
        self._is_continued = True
        self._notes.news.set()

    def _resume(self) -> None:
        """Let the commands go on when it is known whose items they still are."""
        self._is_continued = False
        for job in self._stop.renew():
            self._commands.lose(job)
        for run in self._commands.runs:
            run.send(signal.SIGCONT)

    # What the loop tells, in its threads.

    def _note(self, event: WorkEvent) -> None:
        if isinstance(event, Ended):
            self._settle(event)
        elif isinstance(event, Lost):
            self._commands.lose(event.job)
        elif isinstance(event, Contact):
            self._has_contact, self._is_out = True, False
            self._supervision.ready(status(self.progress))
            if event.after_s is not None:
                self._notes.reconnected(event.after_s)
        elif isinstance(event, Outage) and not self._is_out:
            self._is_out = True
            self._supervision.lost(escaped_text(event.error.message))
            self._notes.disconnected(event.error)
        elif isinstance(event, Failed) and not isinstance(event.error, ServerError | EndWorker):
            self._fail(event.error)

    def _may_begin(self) -> bool:
        """Whether a command may begin: a signal that has arrived before it is followed first."""
        self._look_for_signals()
        return self._stage is _Stage.WORKING

    def _settle(self, ended: Ended) -> None:
        """Record an end that the server has acknowledged."""
        job, is_lost = ended.job, ended.fate is Fate.LOST
        exited = self._commands.exits.pop(job, Exit())
        is_own_doing = is_lost and exited.exit_code == 0 and _is_own_doing(job)
        is_retry = ended.fate is Fate.RETRY
        event = Event.of(job, EventKind(ended.fate.value), exited)._replace(
            attempt=job.attempt if ended.end is not None else job.attempt - 1,
            reason=_LOSSES[job.loss or Loss.ENDED] if is_lost else _reason_of(ended),
            delay_s=ended.step.delay_s if is_retry else None,
            has_backlog=is_retry and _has_backlog(job),
            gave_up=ended.gave_up,
        )
        self.progress.counts[event.kind] += 1
        self.progress.gave_up += event.gave_up
        self._events.append(event)
        if event.reason is not None and not is_own_doing:
            self.progress.vanished += is_lost
            self._notes.failed(event)
        if len(self._events) > _UNREAD_MAX:
            self._follow_pause()


def _is_own_doing(job: Job) -> bool:
    """Whether a command that succeeded has ended its lease itself, as by `rwq release`."""
    if job.loss in (Loss.MOVED, Loss.GONE):
        return True
    if job.loss is not Loss.ENDED:
        return False
    # Then it waits; a lease that has vanished leaves it in processing.
    with suppress(ServerError):
        return state(job.handle, job.item_id) in (State.WAITING, State.DELAYED, State.GONE)
    return False


def _has_backlog(job: Job) -> bool:
    """Whether items wait that are probably taken before a retry."""
    with suppress(ServerError):
        return int(job.handle.call("LLEN", job.handle.keys.main)) > 0
    return False


def _reason_of(ended: Ended) -> bytes | None:
    """Why an item was retried or given up; None for the others."""
    if isinstance(ended.end, Failure | GiveUp):
        return ended.end.reason
    return ended.step.data if ended.end is None else None
