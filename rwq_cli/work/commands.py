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
from rwq_cli.work.events import Exit, Listener, Progress
from rwq_cli.work.invocations import Invocations
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
    """How long commands run.

    Attributes:
        max_time_s: How long a command may run, seconds; None for no limit.
        kill_after_s: How long after SIGTERM a command gets SIGKILL, seconds.
        grace_s: How long commands may go on when the worker is stopped, seconds; None for no limit.
    """

    max_time_s: float | None
    kill_after_s: float
    grace_s: float | None


class EndWorker(BaseException):
    """Raised by a command's run to put its item back and end the worker."""

    def __init__(self, error: RwqError) -> None:
        self.error = error


class Commands:
    """Runs commands, in the threads of the loop; any thread may end them.

    Args:
        invocations: Makes the commands.
        outputs: Where their output goes.
        limits: How long they run.
        progress: The progress of the worker.
        say: Has a method of the listener called by the main thread.
        started: Called for each job whose command has begun.
        may_begin: Says whether a command may begin.

    Attributes:
        exits: How the command of a job has ended, until the end of the job is settled.
        cause: Why no command may begin any more; None while they may.
    """

    def __init__(
        self,
        invocations: Invocations,
        outputs: Outputs,
        limits: CommandLimits,
        progress: Progress,
        say: Callable[[Callable[[Listener], object]], object],
        started: Callable[[Job, int], object],
        may_begin: Callable[[], bool],
    ) -> None:
        self._invocations = invocations
        self._outputs = outputs
        self._limits = limits
        self._progress = progress
        self._say = say
        self._tell_started = started
        self._may_begin = may_begin
        self._runs: dict[int, Run] = {}
        self._run_of: dict[Job, Run] = {}
        self._jobs_of: dict[Run, Sequence[Job]] = {}
        self._leftovers = LeftoverReader()
        # Held while a process is started, which is not known yet.
        self._starting = Lock()
        self._received_s: dict[int, float] = {}
        self.exits: dict[Job, Exit] = {}
        self.cause: Cause | None = None

    @property
    def running(self) -> int:
        """How many run, or are being started."""
        return len(self._runs) + self._starting.locked()

    def end_all(self) -> None:
        """End all commands, also those that are being started."""
        self.cause = Cause.STOP
        for run in list(self._runs.values()):
            run.end(Cause.STOP)

    def kill_all(self) -> None:
        """Kill all commands."""
        for run in list(self._runs.values()):
            run.kill()

    def send_all(self, number: int) -> None:
        """Send a signal to the process groups of all commands."""
        for run in list(self._runs.values()):
            run.send(number)

    def shift(self, seconds: float) -> None:
        """Let their times end later: they were suspended for so long."""
        for run in list(self._runs.values()):
            run.shift(seconds)

    def lose(self, job: Job) -> None:
        """End the command of a lost job, unless it has others that are not lost."""
        run = self._run_of.get(job)
        if run is not None and all(each.loss is not None for each in self._jobs_of.get(run, ())):
            run.end(Cause.LOST)

    def note_signal(self, number: int) -> None:
        """Note that the worker has received a signal now."""
        self._received_s[number] = time.monotonic()

    def reap_orphans(self) -> None:
        """As process 1: reap what commands have left running and what has ended since."""
        with suppress(ChildProcessError), self._starting:
            while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if found.si_pid in self._runs:
                    return
                os.waitpid(found.si_pid, os.WNOHANG)

    def __call__(self, jobs: Job | list[Job]) -> JobEnd:
        """Run the command for a job, or for a batch of them."""
        jobs = [jobs] if isinstance(jobs, Job) else jobs
        if not self._may_begin():
            return self._unused(jobs)
        try:
            with self._invocations.file_for(jobs) as file:
                run = self._start(jobs, file)
                try:
                    run.wait(self._leftovers, lambda: self._tell_stopped(jobs[0], run.pid))
                finally:
                    self._forget(run)
        except BadArguments as error:
            return GiveUp(str(error).encode())
        except CannotRun as error:
            self._unused(jobs)
            raise EndWorker(error) from None
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
                if is_alone or self.cause is not None:
                    raise
                time.sleep(_RETRY_S)
        self._progress.running = len(self._runs)
        self._jobs_of[run] = jobs
        for job in jobs:
            self._run_of[job] = run
            self._tell_started(job, run.pid)
        if self.cause is not None:
            run.end(self.cause)
        return run

    def _forget(self, run: Run) -> None:
        del self._runs[run.pid]
        self._progress.running = len(self._runs)
        for job in self._jobs_of.pop(run):
            del self._run_of[job]

    def _unused(self, jobs: Sequence[Job]) -> JobEnd:
        """The end of jobs whose command was not started."""
        for job in jobs:
            job.has_started = False
        return PutBack(front=True)

    def _tell_stopped(self, job: Job, pid: int) -> None:
        self._say(lambda notes: notes.is_stopped(job.item_id, pid))

    def _judge(self, jobs: Sequence[Job], run: Run) -> JobEnd:
        """Decide what becomes of the items of a command; it may end the worker."""
        code, tail = run.code or 0, run.stderr_tail
        number = -code if code < 0 else None
        exited = Exit(run.pid, None if number else code, number, time.monotonic() - run.began_s)
        self.exits.update(dict.fromkeys(jobs, exited))
        said = b": " + tail if tail else b""
        if run.cause is Cause.TIMEOUT:
            return Failure(b"timed out after %gs" % (self._limits.max_time_s or 0) + said)
        if code == 0:
            if run.result.is_cut:
                self._say(lambda notes: notes.result_cut(jobs[0].item_id))
            return Done(run.result.value if self._outputs.stdout is None else None)
        if run.cause is not None or self._was_hit(run, code):
            return PutBack(front=True)
        if code == PUT_BACK:
            return PutBack(rest_s=_REST_S)
        if code == GIVE_UP:
            return GiveUp(b"exit 100" + said)
        if code in NOT_RUN:
            hint = tail.decode("utf-8", "replace") or None
            raise EndWorker(CannotRun(f"the command cannot be run: exit {code}", hint))
        how = signal_name(-code).encode() if code < 0 else b"exit %d" % code
        return Failure(how + said)

    def _was_hit(self, run: Run, code: int) -> bool:
        """Whether a signal to the worker's process group, such as that of Ctrl-C, ended a command.

        It is in that group itself for a moment, until it has a session of its own.
        """
        is_young = time.monotonic() < run.began_s + _START_S
        received_s = self._received_s.get(-code, 0.0)
        return code < 0 and is_young and received_s >= run.began_s


def signal_name(number: int) -> str:
    """The name of a signal, such as `SIGKILL`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
