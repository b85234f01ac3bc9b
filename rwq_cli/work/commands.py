"""Running the command of each job: the function of `WorkQueue.work`."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock
from typing import NamedTuple

from rwq_cli.core.errors import RwqError
from rwq_cli.core.work.job import Job
from rwq_cli.core.work.policy import Done, Failure, GiveUp, JobEnd, PutBack
from rwq_cli.work.events import Event, EventKind, Exit, Progress
from rwq_cli.work.invocations import Invocations
from rwq_cli.work.notes import Notes
from rwq_cli.work.output import LeftoverReader, Outputs
from rwq_cli.work.programs import BadArguments, CannotRun, Exhausted
from rwq_cli.work.running import Cause, Run

# The exit codes of a command that mean something.
PUT_BACK, GIVE_UP, NOT_RUN = 75, 100, (126, 127)
# How long a slot is empty after its command has put its item back, and how often a process is
# started again that the machine had no room for.
_REST_S, _RETRY_S = 1.0, 0.1
# For how long, while none of its own commands run.
_ROOM_S = 5.0
# A command that has run for less may have been hit by a signal as it started.
_START_S = 1.0


class CommandLimits(NamedTuple):
    """How long commands run, after SIGTERM, and after the worker was stopped; None for no limit."""

    max_time_s: float | None
    kill_after_s: float
    grace_s: float | None


class EndWorker(BaseException):
    """Raised by a command's run to put its item back and end the worker."""

    def __init__(self, error: RwqError) -> None:
        self.error = error


class Commands:
    """Runs commands, in the threads of the loop; any thread may end them.

    `may_begin` says whether a command may begin; `started` takes an event for each job whose
    command has.
    """

    def __init__(
        self,
        invocations: Invocations,
        outputs: Outputs,
        limits: CommandLimits,
        progress: Progress,
        notes: Notes,
        may_begin: Callable[[], bool],
        started: Callable[[Event], object] | None,
    ) -> None:
        self._invocations = invocations
        self._outputs = outputs
        self._limits = limits
        self._progress = progress
        self._notes = notes
        self._may_begin = may_begin
        self._tell_started = started
        self._runs: dict[int, tuple[Run, Sequence[Job]]] = {}
        self._leftovers = LeftoverReader()
        # Held while a process is started, which is not known yet.
        self._starting = Lock()
        self._is_ended = False
        # How the command of a job has ended, until the end of the job is settled.
        self.exits: dict[Job, Exit] = {}

    @property
    def running(self) -> int:
        """How many run, or are being started."""
        return len(self._runs) + self._starting.locked()

    @property
    def runs(self) -> list[Run]:
        """Those that run."""
        return [run for run, _ in list(self._runs.values())]

    def end_all(self) -> None:
        """End all commands, also those that are being started."""
        self._is_ended = True
        for run in self.runs:
            run.end(Cause.STOP)

    def lose(self, job: Job) -> None:
        """End the command of a lost job, unless it has others that are not lost."""
        for run, jobs in list(self._runs.values()):
            if job in jobs and all(each.loss is not None for each in jobs):
                run.end(Cause.LOST)

    def reap_orphans(self) -> None:
        """As process 1: reap what commands have left running and what has ended since."""
        with suppress(ChildProcessError), self._starting:
            while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if found.si_pid in self._runs:
                    return
                os.waitpid(found.si_pid, os.WNOHANG)

    def __call__(self, given: Job | list[Job]) -> JobEnd:
        """Run the command for a job, or for a batch of them."""
        jobs = [given] if isinstance(given, Job) else given
        if not self._may_begin():
            return _unused(jobs)
        try:
            with self._invocations.file_for(jobs) as file:
                run = self._start(jobs, file)
                try:
                    run.wait(
                        self._leftovers, lambda: self._notes.is_stopped(jobs[0].item_id, run.pid)
                    )
                finally:
                    del self._runs[run.pid]
                    self._progress.running = len(self._runs)
        except BadArguments as error:
            return GiveUp(str(error).encode())
        except CannotRun as error:
            _unused(jobs)
            raise EndWorker(error) from None
        return self._judge(jobs, run)

    def _start(self, jobs: Sequence[Job], file: bytes | None) -> Run:
        invocation = self._invocations.of(jobs, file)
        gives_up_s = time.monotonic() + _ROOM_S
        limits = self._limits
        while True:
            try:
                with self._starting:
                    run = Run(
                        invocation,
                        self._outputs,
                        max_time_s=limits.max_time_s,
                        kill_after_s=limits.kill_after_s,
                    )
                    self._runs[run.pid] = run, jobs
                break
            except Exhausted:
                # When a process has ended, there may be room.
                is_alone = not self._runs and time.monotonic() > gives_up_s
                if is_alone or self._is_ended:
                    raise
                time.sleep(_RETRY_S)
        self._progress.running = len(self._runs)
        if self._tell_started is not None:
            for job in jobs:
                self._tell_started(Event.of(job, EventKind.STARTED, Exit(run.pid)))
        if self._is_ended:
            run.end(Cause.STOP)
        return run

    def _judge(self, jobs: Sequence[Job], run: Run) -> JobEnd:
        """Decide what becomes of the items of a command; it may end the worker."""
        # What has arrived by now is followed before another item is taken.
        is_working = self._may_begin()
        code, tail, run_s = run.code or 0, run.stderr.tail, time.monotonic() - run.began_s
        number = -code if code < 0 else None
        exited = Exit(run.pid, None if number else code, number, run_s)
        self.exits.update(dict.fromkeys(jobs, exited))
        said = b": " + tail if tail else b""
        if run.cause is Cause.TIMEOUT:
            return Failure(b"timed out after %gs" % (self._limits.max_time_s or 0) + said)
        if code == 0:
            if run.result.is_cut:
                self._notes.result_cut(jobs[0].item_id)
            return Done(run.result.value if self._outputs.stdout is None else None)
        # The signal that stops the worker, such as that of Ctrl-C, also reaches a command that has
        # no session of its own yet.
        is_hit = number in (signal.SIGINT, signal.SIGTERM) and run_s < _START_S
        if run.cause is not None or (is_hit and not is_working):
            return PutBack(front=True)
        if code == PUT_BACK:
            return PutBack(rest_s=_REST_S)
        if code == GIVE_UP:
            return GiveUp(b"exit 100" + said)
        if code in NOT_RUN:
            hint = tail.decode("utf-8", "replace") or None
            raise EndWorker(CannotRun(f"the command cannot be run: exit {code}", hint))
        return Failure((b"exit %d" % code if number is None else _signal_name(number)) + said)


def _unused(jobs: Sequence[Job]) -> JobEnd:
    """The end of jobs whose command was not started."""
    for job in jobs:
        job.has_started = False
    return PutBack(front=True)


def _signal_name(number: int) -> bytes:
    try:
        return signal.Signals(number).name.encode()
    except ValueError:
        return b"signal %d" % number
