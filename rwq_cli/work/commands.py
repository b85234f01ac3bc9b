"""Running the command of each job: the function of `WorkQueue.work`."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from rwq_cli.core.errors import RwqError
from rwq_cli.core.work.job import Job
from rwq_cli.core.work.policy import Done, Failure, GiveUp, JobEnd, PutBack
from rwq_cli.output.escape import escaped
from rwq_cli.work.invocations import Invocations
from rwq_cli.work.notes import Event, Notes
from rwq_cli.work.programs import BadArguments, CannotRun, Exhausted, Invocation
from rwq_cli.work.running import Cause, Limits, Outputs, Run

# The exit codes of a command that mean something.
PUT_BACK, GIVE_UP, NOT_RUN = 75, 100, (126, 127)
# How long a slot is empty after its command has put its item back, and how often a process is
# started again that the machine had no room for.
_REST_S, _RETRY_S = 1.0, 0.1
# For how long, while none of its own commands run.
_ROOM_S = 5.0
# A command that has run for less may have been hit by a signal as it started.
_START_S = 1.0


class Commands:
    """Runs commands, in the threads of the loop; any thread may end them.

    `may_begin` says whether a command may begin, `end_with` ends the worker with an error, and
    `started` takes an event for each job whose command has begun.
    """

    def __init__(
        self,
        invocations: Invocations,
        outputs: Outputs,
        limits: Limits,
        notes: Notes,
        may_begin: Callable[[], bool],
        end_with: Callable[[RwqError], object],
        started: Callable[[Event], object],
    ) -> None:
        self._invocations, self._outputs, self._limits = invocations, outputs, limits
        self._notes = notes
        self._may_begin, self._end_with, self._started = may_begin, end_with, started
        self._runs: dict[int, tuple[Run, Sequence[Job]]] = {}
        # The slots whose processes are being started, and are not known yet.
        self._starting: set[int] = set()
        self._is_ended = False
        # What is known of a job's command, until the end of the job is settled.
        self.events: dict[Job, Event] = {}

    @property
    def running(self) -> int:
        """How many run, or are being started."""
        return len(self._runs) + len(self._starting)

    @property
    def runs(self) -> list[Run]:
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
        with suppress(ChildProcessError):
            while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                # In this order: one that has been started since then is in the first or the second.
                if self._starting or found.si_pid in self._runs:
                    return
                os.waitpid(found.si_pid, os.WNOHANG)

    def __call__(self, given: Job | list[Job]) -> JobEnd:
        """Run the command for a job, or for a batch of them."""
        jobs = [given] if isinstance(given, Job) else given
        if not self._may_begin():
            return _unused(jobs)
        try:
            with self._invocations.file_for(jobs) as file:
                run = self._start(jobs, self._invocations.of(jobs, file))
                try:
                    run.wait(lambda: self._note_stopped(jobs[0], run.pid))
                finally:
                    del self._runs[run.pid]
                    self._notes.progress.running = len(self._runs)
        except BadArguments as error:
            return GiveUp(str(error).encode())
        except CannotRun as error:
            self._end_with(error)
            return _unused(jobs)
        return self._judge(jobs, run)

    def _start(self, jobs: Sequence[Job], invocation: Invocation) -> Run:
        gives_up_s = time.monotonic() + _ROOM_S
        while True:
            self._starting.add(jobs[0].slot)
            try:
                run = Run(invocation, self._outputs, self._limits)
                self._runs[run.pid] = run, jobs
                break
            except Exhausted:
                # When a process has ended, there may be room.
                is_alone = not self._runs and time.monotonic() > gives_up_s
                if is_alone or self._is_ended:
                    raise
            finally:
                self._starting.discard(jobs[0].slot)
            time.sleep(_RETRY_S)
        self._notes.progress.running = len(self._runs)
        for job in jobs:
            self.events[job] = event = Event.of(job, run.pid)
            self._started(event)
        if self._is_ended:
            run.end(Cause.STOP)
        return run

    def _note_stopped(self, job: Job, pid: int) -> None:
        """Note that a command was stopped, as by SIGSTOP."""
        text = f"its command (process {pid}) is stopped; kill -CONT {pid} lets it go on"
        self._notes.line(f"{escaped(job.item_id)}: {text}")

    def _judge(self, jobs: Sequence[Job], run: Run) -> JobEnd:
        """Decide what becomes of the items of a command; it may end the worker."""
        # What has arrived by now is followed before another item is taken.
        is_working = self._may_begin()
        code, tail, run_s = run.code or 0, run.stderr.tail, time.monotonic() - run.began_s
        number = -code if code < 0 else None
        for job in jobs:
            self.events[job] = self.events[job]._replace(
                exit_code=None if number else code, signal=number, run_s=run_s
            )
        said = b": " + tail if tail else b""
        if run.cause is Cause.TIMEOUT:
            return Failure(b"timed out after %gs" % (self._limits.max_time_s or 0) + said)
        if code == 0:
            if run.stdout.is_cut:
                text = "its command printed more than 1 MiB; only the first MiB is kept"
                self._notes.line(f"{escaped(jobs[0].item_id)}: {text} as its result")
            return Done(bytes(run.stdout.kept) if self._outputs.stdout is None else None)
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
            self._end_with(CannotRun(f"the command cannot be run: exit {code}", hint))
            return PutBack(front=True)
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
