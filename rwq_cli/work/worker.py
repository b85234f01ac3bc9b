"""A worker whose function runs a command: `WorkQueue.work`, and what signals ask of it.

The loop of the core runs in threads, and so do signals. The main thread yields what happens, and
alone writes records: a reader that stalls holds up neither a lease nor a signal.
"""

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from enum import IntEnum
from threading import Event as Flag, Lock, Thread, Timer
from typing import NamedTuple

from rwq_cli.core.errors import RwqError, ServerError
from rwq_cli.core.inspect.report import state
from rwq_cli.core.model import State
from rwq_cli.core.work.job import Ended, Job, Loss
from rwq_cli.core.work.loop import Contact, Failed, Lost, Outage, StopToken, WorkEvent, WorkSummary
from rwq_cli.core.work.policy import Done, Failure, Fate, GiveUp, JobEnd, PutBack
from rwq_cli.core.work.stopping import EndReason
from rwq_cli.output.escape import escaped_text
from rwq_cli.service.supervision import Supervision
from rwq_cli.work.events import Event, EventKind, Exit, Listener, Progress
from rwq_cli.work.invocations import Invocations
from rwq_cli.work.leftover_commands import watch_leftovers
from rwq_cli.work.output import LeftoverReader, Outputs
from rwq_cli.work.programs import BadArguments, CannotRun, Exhausted, occupy_standard_files
from rwq_cli.work.running import Cause, Run
from rwq_cli.work.signals import handled_signals

# The exit codes of a command that mean something.
PUT_BACK, GIVE_UP, NOT_RUN = 75, 100, (126, 127)

# How long a slot is empty after its command has put its item back, and how often a process is
# started again that the machine had no room for.
_REST_S, _RETRY_S = 1.0, 0.1
# For how long, while none of its own commands run.
_ROOM_S = 5.0
# A command that has run for less may have been hit by a signal as it started.
_START_S = 1.0
# How often the main thread looks for news, and how often it shows that it is not stuck.
_LOOK_S, _BEAT_S = 0.1, 5.0
# With more events that nobody has read, nothing is taken.
_UNREAD_MAX = 1000
# How long a killed worker waits for the server to take its items back.
_LAST_CALL_S = 3.0


class CommandLimits(NamedTuple):
    """How long commands run.

    Attributes:
        max_time_s: How long a command may run, seconds; None for no limit.
        kill_after_s: How long after SIGTERM a command gets SIGKILL, seconds.
        grace_s: How long commands may go on when the worker is stopped, seconds; None for no limit.
    """

    max_time_s: float | None
    kill_after_s: float
    grace_s: float | None


class _Stage(IntEnum):
    """How far a worker is on its way to its end."""

    WORKING = 0
    STOPPING = 1  # takes no more, finishes what runs
    ENDING = 2  # has sent SIGTERM to what runs, and releases its items
    KILLING = 3  # has sent SIGKILL


class _EndWorker(BaseException):
    """Raised by a command's run to put its item back and end the worker."""

    def __init__(self, error: RwqError) -> None:
        self.error = error


class Worker:
    """Runs commands until it is to end; iterate over `events`.

    Args:
        work: `WorkQueue.work` with all its options but the function, the token and the listener.
        invocations: Makes the commands.
        outputs: Where their output goes.
        limits: The limits of the commands.
        notes: Is told what happens.
        supervision: Answers supervisors.
        housekeeping: `keep_house` with its options but the flag and the listeners; None for none.
        yields_starts: Whether the start of a command is an event, too.

    Attributes:
        progress: Its progress.
        summary: What it has done; None until it has ended.
    """

    def __init__(
        self,
        work: Callable[..., WorkSummary],
        invocations: Invocations,
        outputs: Outputs,
        limits: CommandLimits,
        notes: Listener,
        supervision: Supervision,
        housekeeping: Callable[..., None] | None = None,
        *,
        yields_starts: bool = True,
    ) -> None:
        self._work = work
        self._invocations = invocations
        self._outputs = outputs
        self._limits = limits
        self._notes = notes
        self._supervision = supervision
        self._housekeeping = housekeeping
        self._yields_starts = yields_starts
        self.progress = Progress()
        self.summary: WorkSummary | None = None
        self._stop = StopToken()
        self._stage = _Stage.WORKING
        self._runs: dict[int, Run] = {}
        self._run_of: dict[Job, Run] = {}
        self._jobs_of: dict[Run, Sequence[Job]] = {}
        self._exits: dict[Job, Exit] = {}
        self._leftovers = LeftoverReader()
        # For the main thread: what happened, and what is to be written.
        self._events: deque[Event] = deque()
        self._to_do: deque[Callable[[], object]] = deque()
        self._news = Flag()
        self._ended = Flag()
        self._failure: BaseException | None = None
        self._received_s: dict[int, float] = {}
        self._is_abandoned = self._is_continued = self._is_paused = False
        self._has_contact = self._is_out = False
        # Held while a process is started, which is not known yet.
        self._starting = Lock()

    def events(self) -> Iterator[Sequence[Event]]:
        """Work; yields what happened.

        Raises:
            RwqError: The command cannot be run, or the server refused, or was lost for too long.
            KeyboardInterrupt: Signals ended the commands.
        """
        occupy_standard_files()
        watch = watch_leftovers(self._invocations.mark, self._limits.kill_after_s)
        worker = Thread(target=self._run_loop, name="rwq-work", daemon=True)
        try:
            with handled_signals(self._handle):
                worker.start()
                if self._housekeeping is not None:
                    Thread(target=self._keep_house, name="rwq-house", daemon=True).start()
                yield from self._report(worker)
        finally:
            self._ended.set()
            for run in list(self._runs.values()):
                run.kill()
            self._notes.hide()
            if watch is not None:
                watch.close()
            self._invocations.files.close()
        if self._failure is not None:
            raise self._failure
        if self._stage >= _Stage.ENDING:
            raise KeyboardInterrupt

    def _report(self, worker: Thread) -> Iterator[Sequence[Event]]:
        """Yield events, and do what the main thread has to, until the loop has ended."""
        beats_s = ticks_s = 0.0
        while True:
            is_over = self._is_abandoned or not worker.is_alive()
            self._news.clear()
            while self._to_do:
                self._to_do.popleft()()
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
                    self._supervision.status(self._notes.status(self.progress))
            if os.getpid() == 1:
                self._reap_orphans()
            self._news.wait(_LOOK_S)

    def _run_loop(self) -> None:
        try:
            self.summary = self._work(self._run, stop=self._stop, on_event=self._note)
        except _EndWorker as end:
            self._failure = end.error
        except BaseException as error:
            self._failure = error
        self._news.set()
        if self._stage >= _Stage.ENDING:
            # The reader of stdout may have stalled.
            self._after(_LAST_CALL_S, lambda: os._exit(128 + signal.SIGINT))

    def _keep_house(self) -> None:
        assert self._housekeeping is not None

        def cleaned(*counts: object) -> None:
            self._say(lambda: self._notes.cleaned(*counts))  # type: ignore[arg-type]

        def counted(waiting: int) -> None:
            self.progress.left = waiting

        try:
            self._housekeeping(self._ended, cleaned=cleaned, counted=counted)
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """End with this error, and with all commands: nothing goes on half alive."""
        self._failure = self._failure or error
        self._stop.set()
        self._end_all(Cause.STOP)

    def _say(self, what: Callable[[], object]) -> None:
        """Have the main thread write something."""
        self._to_do.append(what)
        self._news.set()

    def _after(self, seconds: float, what: Callable[[], object]) -> None:
        timer = Timer(seconds, what)
        timer.daemon = True
        timer.start()

    # ---- signals, in a thread of their own

    def _handle(self, number: int) -> None:
        try:
            self._follow(number)
        except BaseException as error:
            self._fail(error)

    def _follow(self, number: int) -> None:
        self._received_s[number] = time.monotonic()
        if number in (signal.SIGINT, signal.SIGTERM):
            self._advance(_Stage(min(self._stage + 1, _Stage.KILLING)))
        elif number in (signal.SIGUSR1, signal.SIGUSR2):
            self._is_paused = number == signal.SIGUSR1
            self._follow_pause()
        elif number == signal.SIGHUP:
            self._stop.drain()
        elif number == signal.SIGTSTP:
            self._suspend()

    def _advance(self, stage: _Stage) -> None:
        if stage <= self._stage:
            return
        self._stage = stage
        # One that is being started may have sent the signal.
        running = len(self._runs) + self._starting.locked()
        if stage is _Stage.STOPPING:
            self._stop.set()
            self._say(self._supervision.stopping)
            if self._limits.grace_s is not None:
                self._after(self._limits.grace_s, lambda: self._advance(_Stage.ENDING))
            self._say(lambda: self._notes.stopping(running))
        elif stage is _Stage.ENDING:
            self._stop.set()
            self._end_all(Cause.STOP)
            self._say(lambda: self._notes.ending(running))
        else:
            for run in list(self._runs.values()):
                run.kill()
            self._after(_LAST_CALL_S, self._abandon)

    def _end_all(self, cause: Cause) -> None:
        for run in list(self._runs.values()):
            run.end(cause)

    def _abandon(self) -> None:
        """End without waiting for commands, the server, or the reader of stdout."""
        Thread(target=self._stop.release, daemon=True).start()
        self._is_abandoned = True
        self._news.set()
        time.sleep(_REST_S)
        os._exit(128 + signal.SIGINT)

    def _follow_pause(self) -> None:
        self._stop.pause(is_paused=self._is_paused or len(self._events) > _UNREAD_MAX)

    def _suspend(self) -> None:
        """Ctrl-Z: stop the commands, and then this process, until it is continued."""
        self._notes.hide()
        for run in list(self._runs.values()):
            # SIGTSTP does not stop what has no terminal.
            run.send(signal.SIGSTOP)
        began_s = time.monotonic()
        os.kill(os.getpid(), signal.SIGSTOP)
        for run in list(self._runs.values()):
            run.shift(time.monotonic() - began_s)
        self._is_continued = True
        self._news.set()

    def _resume(self) -> None:
        """Let the commands go on when it is known whose items they still are."""
        self._is_continued = False
        for job in self._stop.renew():
            self._lose(job)
        for run in list(self._runs.values()):
            run.send(signal.SIGCONT)

    def _reap_orphans(self) -> None:
        """As process 1: reap what commands have left running and what has ended since."""
        with suppress(ChildProcessError), self._starting:
            while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if found.si_pid in self._runs:
                    return
                os.waitpid(found.si_pid, os.WNOHANG)

    # ---- what the loop tells, in its threads

    def _note(self, event: WorkEvent) -> None:
        if isinstance(event, Ended):
            self._settle(event)
        elif isinstance(event, Lost):
            self._lose(event.job)
        elif isinstance(event, Contact):
            self._has_contact, self._is_out = True, False
            self._say(lambda: self._supervision.ready(self._notes.status(self.progress)))
            if (after_s := event.after_s) is not None:
                self._say(lambda: self._notes.reconnected(after_s))
        elif isinstance(event, Outage):
            self._lose_contact(event.error)
        elif isinstance(event, Failed) and not isinstance(event.error, ServerError | _EndWorker):
            self._fail(event.error)

    def _lose_contact(self, error: ServerError) -> None:
        if not self._is_out:
            self._is_out = True
            self._say(lambda: self._supervision.lost(escaped_text(error.message)))
            self._say(lambda: self._notes.disconnected(error))

    def _lose(self, job: Job) -> None:
        """End a command whose leases are all lost."""
        run = self._run_of.get(job)
        if run is not None and all(each.loss is not None for each in self._jobs_of.get(run, ())):
            run.end(Cause.LOST)

    def _settle(self, ended: Ended) -> None:
        """Record an end that the server has acknowledged."""
        job, is_lost = ended.job, ended.fate is Fate.LOST
        exited = self._exits.pop(job, Exit())
        is_own_doing = is_lost and exited.exit_code == 0 and _is_own_doing(job)
        event = Event(
            EventKind(ended.fate.value),
            job.queue,
            job.item_id,
            job.attempt if ended.end is not None else job.attempt - 1,
            job.returns,
            exited,
            _LOSSES[job.loss or Loss.ENDED] if is_lost else _reason_of(ended),
            ended.step.delay_s if ended.fate is Fate.RETRY else None,
            ended.fate is Fate.RETRY and _has_backlog(job),
            ended.gave_up,
            time.time(),
        )
        self.progress.counts[event.kind] += 1
        self.progress.gave_up += event.gave_up
        self._events.append(event)
        if event.reason is not None and not is_own_doing:
            self.progress.vanished += is_lost
            self._say(lambda: self._notes.failed(event))
        if len(self._events) > _UNREAD_MAX:
            self._follow_pause()

    # ---- commands, in the threads of the loop

    def _run(self, jobs: Job | list[Job]) -> JobEnd:
        """Run the command for a job, or for a batch of them."""
        jobs = [jobs] if isinstance(jobs, Job) else jobs
        file: bytes | None = None
        try:
            file = self._invocations.file_for(jobs)
            run = self._start(jobs, file)
            try:
                run.wait(self._leftovers, lambda: self._tell_stopped(jobs[0], run.pid))
            finally:
                self._forget(run)
        except BadArguments as error:
            return GiveUp(str(error).encode())
        except CannotRun as error:
            for job in jobs:
                job.has_started = False
            raise _EndWorker(error) from None
        finally:
            if file is not None:
                self._invocations.files.remove(file)
        return self._judge(jobs, run)

    def _start(self, jobs: Sequence[Job], file: bytes | None) -> Run:
        invocation = self._invocations.of(jobs, file)
        gives_up_s = time.monotonic() + _ROOM_S
        while True:
            try:
                with self._starting:
                    run = Run(
                        invocation,
                        self._outputs,
                        b"RWQ_SESSION=" + invocation.variables[b"RWQ_SESSION"],
                        max_time_s=self._limits.max_time_s,
                        kill_after_s=self._limits.kill_after_s,
                    )
                    self._runs[run.pid] = run
                break
            except Exhausted:
                # When a process has ended, there may be room.
                is_alone = not self._runs and time.monotonic() > gives_up_s
                if is_alone or self._stage >= _Stage.STOPPING:
                    raise
                time.sleep(_RETRY_S)
        self.progress.running = len(self._runs)
        self._jobs_of[run] = jobs
        for job in jobs:
            self._run_of[job] = run
            if self._yields_starts:
                self._events.append(_started(job, run.pid))
        if self._stage >= _Stage.ENDING or self._failure is not None:
            run.end(Cause.STOP)
        return run

    def _forget(self, run: Run) -> None:
        del self._runs[run.pid]
        self.progress.running = len(self._runs)
        for job in self._jobs_of.pop(run):
            del self._run_of[job]

    def _tell_stopped(self, job: Job, pid: int) -> None:
        self._say(lambda: self._notes.is_stopped(job.item_id, pid))

    def _judge(self, jobs: Sequence[Job], run: Run) -> JobEnd:
        """Decide what becomes of the items of a command; it may end the worker."""
        code, tail = run.code or 0, run.stderr_tail
        number = -code if code < 0 else None
        exited = Exit(run.pid, None if number else code, number, time.monotonic() - run.began_s)
        self._exits.update(dict.fromkeys(jobs, exited))
        said = b": " + tail if tail else b""
        if run.cause is Cause.TIMEOUT:
            return Failure(b"timed out after %gs" % (self._limits.max_time_s or 0) + said)
        if code == 0:
            if run.result.is_cut:
                self._say(lambda: self._notes.result_cut(jobs[0].item_id))
            return Done(run.result.value if self._outputs.stdout is None else None)
        if run.cause is not None or self._was_hit(run, code):
            return PutBack(front=True)
        if code == PUT_BACK:
            return PutBack(rest_s=_REST_S)
        if code == GIVE_UP:
            return GiveUp(b"exit 100" + said)
        if code in NOT_RUN:
            hint = tail.decode("utf-8", "replace") or None
            raise _EndWorker(CannotRun(f"the command cannot be run: exit {code}", hint))
        how = signal_name(-code).encode() if code < 0 else b"exit %d" % code
        return Failure(how + said)

    def _was_hit(self, run: Run, code: int) -> bool:
        """Whether a signal to the worker's process group, such as that of Ctrl-C, ended a command.

        It is in that group itself for a moment, until it has a session of its own.
        """
        is_young = time.monotonic() < run.began_s + _START_S
        received_s = self._received_s.get(-code, 0.0)
        return code < 0 and is_young and received_s >= run.began_s


def _started(job: Job, pid: int) -> Event:
    return Event(
        EventKind.STARTED,
        job.queue,
        job.item_id,
        job.attempt,
        job.returns,
        Exit(pid),
        None,
        None,
        False,
        False,
        time.time(),
    )


def signal_name(number: int) -> str:
    """The name of a signal, such as `SIGKILL`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


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


def has_failed(worker: Worker) -> bool:
    """Whether items were given up or lost, or failures ended the worker."""
    why = None if worker.summary is None else worker.summary.why
    is_over = why is EndReason.MAX_FAILURES
    return is_over or worker.progress.gave_up > 0 or worker.progress.vanished > 0


_LOSSES = {
    Loss.TAKEN: b"another session holds the item",
    Loss.ENDED: b"the lease ended",
    Loss.MOVED: b"the item was delayed or buried meanwhile",
    Loss.GONE: b"the item was completed or removed meanwhile",
    Loss.WRONG_TYPE: b"something else has the data key or a lease key of the item",
    Loss.UNREACHABLE: b"the lease ended while the server did not answer",
}
