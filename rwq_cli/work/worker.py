"""A worker that runs commands: the threads of the loop, the one of signals, and the main thread.

Only the main thread writes what has happened, so that neither a slow reader nor a stopped terminal
holds up the loop or a signal.
"""

import os
import select
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import IntEnum
from functools import partial
from threading import Event as Flag, RLock, Thread, Timer

from rwq_cli.core.errors import ServerError
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
from rwq_cli.core.work.held import taken_from
from rwq_cli.core.work.job import Ended, Fate, Job
from rwq_cli.output import human
from rwq_cli.output.escape import escaped_text
from rwq_cli.service.supervision import Supervision, jittered
from rwq_cli.work.commands import Commands
from rwq_cli.work.invocations import Invocations
from rwq_cli.work.notes import Event, Notes, end_event, start_event, status
from rwq_cli.work.running import Limits, Outputs, Run, watch_leftovers

# How often the main thread looks for news, and how often it shows that it is not stuck.
_LOOK_S, _BEAT_S = 0.1, 5.0
# While more events than this are unread, nothing is taken.
_UNREAD_MAX = 1000
# How long the server may take to acknowledge the last ends of a worker whose commands were ended.
_ENDING_S = 3.0
# How long the reader of stdout, or a process that SIGKILL does not end, is waited for after that.
_LEAVE_S = 3.0

_REQUESTS = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2),
    *(signal.SIGTSTP, signal.SIGCONT),
)


class _Stage(IntEnum):
    """How far a worker is on its way to its end."""

    WORKING = 0
    STOPPING = 1  # takes no more, finishes what runs
    ENDING = 2  # has sent SIGTERM to what runs, and releases its items
    KILLING = 3  # has sent SIGKILL


class Worker:
    """Runs commands until it is to end; iterate over `events`.

    `work` is `WorkQueue.work` with all its options but the function, the token and the listener;
    each of `chores` is done in a thread of its own, at once and then every so many seconds.
    """

    def __init__(
        self,
        work: Callable[..., WorkSummary],
        invocations: Invocations,
        outputs: Outputs,
        limits: Limits,
        notes: Notes,
        supervision: Supervision,
        chores: Sequence[tuple[float, Callable[[], object]]],
        *,
        yields_starts: bool,
    ) -> None:
        self._work, self._chores, self._limits = work, chores, limits
        self._notes, self._supervision = notes, supervision
        self._mark, self._yields_starts = invocations.mark, yields_starts
        self._is_batch = invocations.is_batch
        self._summary: WorkSummary | None = None
        self._stop, self._stage = StopToken(), _Stage.WORKING
        # Handles the signals that have arrived.
        self._look: Callable[[], object] = lambda: None
        # Events that nobody has read.
        self._events: deque[Event] = deque()
        self._commands = Commands(
            *(invocations, outputs, limits, notes), *(self._may_begin, self._began, self._end_with)
        )
        # The command of each job that is not settled.
        self._run_of: dict[Job, Run] = {}
        self._ended = Flag()
        # Whether a hangup may be that of a terminal.
        self._had_terminal = _has_terminal()
        self._failure: BaseException | None = None
        # Ctrl-Z suspends it, until SIGCONT.
        self._is_suspended = self._is_continued = self._has_left = False

    @property
    def has_failed(self) -> bool:
        """True if items were given up or lost, or failures ended the worker."""
        why = None if self._summary is None else self._summary.why
        progress = self._notes.progress
        return why is EndReason.MAX_FAILURES or progress.gave_up > 0 or progress.vanished > 0

    # The main thread.

    def events(self) -> Iterator[Sequence[Event]]:
        """Work, and yield what happens; raises KeyboardInterrupt if signals ended the commands."""
        watch = watch_leftovers(self._mark, self._limits.kill_after_s)
        try:
            handle = partial(self._guard, self._handle)
            with _handled_signals(handle, self._commands.turn) as self._look:
                loop = self._in_thread("work", self._run_loop)
                self._in_thread("output", self._commands.passage.serve)
                for chore in self._chores:
                    self._in_thread("chore", self._repeat, *chore)
                yield from self._report(loop)
        finally:
            self._ended.set()
            self._commands.kill_all()
            self._notes.hide()
            watch.close()
        if self._failure is not None:
            raise self._failure
        if self._stage >= _Stage.ENDING:
            raise KeyboardInterrupt

    def _report(self, loop: Thread) -> Iterator[Sequence[Event]]:
        """Yield events, and do what the main thread has to, until the loop has ended."""
        beats_s = ticks_s = 0.0
        notes, progress = self._notes, self._notes.progress
        while True:
            is_read = self._failure is not None or not self._commands.passage.unwritten
            is_over = is_read and not loop.is_alive()
            notes.news.clear()
            notes.write()
            self._commands.pass_left()
            if self._is_continued:
                self._resume()
            if events := taken_from(self._events):
                yield events
            self._follow_pause()
            if is_over:
                return
            progress.running = self._commands.running
            now_s = time.monotonic()
            if notes.tick_s is not None and now_s >= ticks_s:
                ticks_s = now_s + notes.tick_s
                notes.tick()
            if now_s >= beats_s:
                beats_s = now_s + _BEAT_S
                self._supervision.beat(_BEAT_S)
                self._supervision.status(status(progress))
            if os.getpid() == 1:
                self._commands.reap_orphans()
            notes.news.wait(_LOOK_S)

    # Other threads.

    def _in_thread(self, name: str, what: Callable[..., object], *args: object) -> Thread:
        thread = Thread(target=self._guard, args=(what, *args), name=f"rwq-{name}", daemon=True)
        thread.start()
        return thread

    def _guard(self, what: Callable[..., object], *args: object) -> None:
        """Do this in a thread; an unexpected error ends the worker, and all commands with it."""
        try:
            what(*args)
        except BaseException as error:
            self._commands.fail(error)

    def _end_with(self, error: BaseException) -> None:
        """End with this error when the commands that run have ended."""
        self._failure = self._failure or error
        self._stop.set()

    def _run_loop(self) -> None:
        try:
            commands = self._commands
            run = commands.run_batch if self._is_batch else commands.run
            self._summary = self._work(run, stop=self._stop, on_event=self._note)
        except BaseException as error:
            self._failure = self._failure or error
        self._has_left = True
        self._notes.news.set()
        if self._stage >= _Stage.ENDING:
            self._leave_soon()

    def _leave_soon(self) -> None:
        """Limit how long what cannot be ended is waited for: a stalled reader holds this process up
        wherever it writes."""
        self._after(_LEAVE_S, lambda: os._exit(128 + signal.SIGINT))

    def _repeat(self, every_s: float, chore: Callable[[], object]) -> None:
        while not self._ended.is_set():
            with suppress(ServerError):
                chore()
            # Workers that were started together must not clean at the same time.
            self._ended.wait(jittered(every_s))

    def _after(self, seconds: float, what: Callable[[], object]) -> None:
        timer = Timer(seconds, self._guard, (what,))
        timer.daemon = True
        timer.start()

    # The thread of the signals.

    def _handle(self, number: int) -> None:
        if number in (signal.SIGINT, signal.SIGTERM):
            self._advance(_Stage(min(self._stage + 1, _Stage.KILLING)))
        elif number in (signal.SIGUSR1, signal.SIGUSR2):
            self._notes.progress.is_paused = number == signal.SIGUSR1
            self._follow_pause()
        elif number == signal.SIGHUP and self._had_terminal and not _has_terminal():
            self._advance(_Stage(min(self._stage + 1, _Stage.KILLING)))
        elif number == signal.SIGHUP:
            self._stop.drain()
        elif number == signal.SIGTSTP:
            self._suspend()
        elif self._is_suspended:
            for run in self._commands.runs:
                run.due_s = min(run.due_s, time.monotonic() + run.left_s)
            self._is_suspended, self._is_continued = False, True
            self._notes.news.set()

    def _advance(self, stage: _Stage) -> None:
        if stage <= self._stage:
            return
        self._stage = stage
        # This includes those being started: one of them may have sent the signal.
        running = self._commands.running
        commands = human.counted(running, "command")
        if stage is _Stage.STOPPING:
            self._notes.progress.is_stopping = True
            self._stop.set()
            self._supervision.stopping()
            if self._limits.grace_s is not None:
                self._after(self._limits.grace_s, lambda: self._advance(_Stage.ENDING))
            them = "it" if running == 1 else "them"
            text = f"waiting for {commands} to end; Ctrl-C ends {them} and releases the items"
        elif stage is _Stage.ENDING:
            self._commands.end_all()
            self._stop.set(within_s=_ENDING_S)
            if self._has_left:
                # Only a stalled reader keeps it from ending.
                self._leave_soon()
            text = f"sent SIGTERM to {commands}; Ctrl-C sends SIGKILL"
        else:
            self._commands.kill_all()
            self._leave_soon()
            return
        if running:
            self._notes.line(text, is_error=False)

    def _follow_pause(self) -> None:
        is_unread = len(self._events) > _UNREAD_MAX or self._commands.is_full
        is_paused = self._notes.progress.is_paused or is_unread
        if is_paused is not self._stop.is_paused:
            self._stop.pause(is_paused=is_paused)

    def _suspend(self) -> None:
        """Stop the commands on Ctrl-Z, and then this process, until SIGCONT."""
        if os.getpid() == 1 or self._is_suspended:
            # PID 1 cannot be stopped from here.
            return
        self._notes.hide()
        self._is_suspended = True
        self._commands.stop_all()
        # SIGCONT may have come meanwhile, and need not come again.
        self._look()
        if self._is_suspended:
            # Its threads may still run for a moment when this returns.
            os.kill(os.getpid(), signal.SIGSTOP)

    def _resume(self) -> None:
        """Let the commands go on when it is known whose items they still are."""
        self._is_continued = False
        for job in self._stop.renew():
            self._commands.lose(job)
        for run in self._commands.runs:
            run.send(signal.SIGCONT)

    # Called by the loop and the commands, in their threads.

    def _may_begin(self) -> bool:
        """Return True if a command may begin; signals that have arrived are handled first."""
        self._look()
        return self._stage is _Stage.WORKING and not self._is_suspended

    def _began(self, run: Run) -> None:
        self._run_of.update(dict.fromkeys(run.jobs, run))
        if self._yields_starts:
            self._events.extend(start_event(job, run) for job in run.jobs)

    def _note(self, event: WorkEvent) -> None:
        match event:
            case Ended():
                self._settle(event)
            case Lost(job):
                self._commands.lose(job)
            case Contact(after_s):
                self._supervision.ready(status(self._notes.progress))
                if after_s is not None:
                    after = human.duration(after_s)
                    self._notes.line(f"the server is responding again after {after}")
            case Outage(error, patience_s):
                message = escaped_text(error.message)
                self._supervision.lost(message)
                text = "commands keep running, and rwq will try to reconnect for"
                self._notes.line(f"{message}; {text} {human.duration(patience_s)}")
            case Failed(error) if not isinstance(error, ServerError):
                self._commands.fail(error)

    def _settle(self, ended: Ended) -> None:
        event, is_failure = end_event(ended, self._run_of.pop(ended.job, None))
        progress = self._notes.progress
        progress.counts[ended.fate] += 1
        progress.gave_up += event.gave_up
        self._events.append(event)
        if is_failure:
            progress.vanished += ended.fate is Fate.LOST
            self._notes.failed(event)
        self._follow_pause()


def _has_terminal() -> bool:
    """Return whether this process has a terminal, which has not been closed."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


@contextmanager
def _handled_signals(
    handle: Callable[[int], object], turn: RLock
) -> Iterator[Callable[[], object]]:
    """Have a thread handle signals in the block; those that are ignored stay so (nohup).

    One that arrives twice at once counts twice, whatever the others do. They are handled in order,
    under `turn`; handling one may lead to another look. The block gets a function with which other
    threads handle what has arrived by now.
    """
    before = {number: signal.getsignal(number) for number in _REQUESTS}
    handled = [number for number, old in before.items() if old is not signal.SIG_IGN]
    reader, writer = os.pipe()
    for fd in (reader, writer):
        os.set_blocking(fd, False)

    arrived = select.poll()
    arrived.register(reader, select.POLLIN)

    def look() -> bool:
        """Handle what has arrived; returns whether there may be more."""
        with turn:
            # Each command looks twice, and an exception for a pipe that is empty would take longer.
            while arrived.poll(0):
                if not (number := os.read(reader, 1)):
                    return False
                handle(number[0])
        return True

    def wait() -> None:
        poller = select.poll()
        poller.register(reader, select.POLLIN)
        while look():
            poller.poll()
        os.close(reader)

    Thread(target=wait, name="rwq-signals", daemon=True).start()
    waker = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in handled:
        # The number is in the pipe already.
        signal.signal(number, lambda *_: None)
    mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, handled)
    try:
        yield look
    finally:
        signal.set_wakeup_fd(waker)
        for number in handled:
            signal.signal(number, before[number])
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.close(writer)
