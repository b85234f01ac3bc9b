"""Running the command of each job: what `WorkQueue.work` calls.

The loop's thread starts processes. One more thread reads what they print, ends those whose time is
over, and says how they ended. So neither the server nor a new process holds up the others.
"""

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from selectors import EVENT_READ, DefaultSelector

from rwq_cli.core.errors import RwqError
from rwq_cli.core.work.job import Finish, Job
from rwq_cli.core.work.policy import Done, Failure, GiveUp, JobEnd, PutBack
from rwq_cli.output.escape import escaped
from rwq_cli.work.invocations import Invocations
from rwq_cli.work.notes import Notes
from rwq_cli.work.programs import BadArguments, CannotRun, Exhausted
from rwq_cli.work.running import Limits, Outputs, Passage, Run, Stream

# The exit codes of a command that mean something.
PUT_BACK, GIVE_UP, NOT_RUN = 75, 100, (126, 127)
# How long a slot is empty after its command has put its item back, or could not be started because
# the machine had no room; and for how long that is tried, while no other command runs.
_REST_S, _ROOM_S = 1.0, 5.0
# A command that has run for less may have been hit by a signal as it started.
_START_S = 1.0
# How often it is seen whether a command is stopped or is to be killed; and of those that are being
# ended, whether their processes are gone.
_LOOK_S, _GONE_S = 0.5, 0.05
# With more of their output that nobody has read, no command is started.
_UNREAD_MAX_BYTES = 1 << 20


class Commands:
    """Runs the commands of a worker; any thread may end them.

    `may_begin` says whether one may begin, and `end_with` ends the worker when all have ended.
    """

    def __init__(
        self,
        invocations: Invocations,
        outputs: Outputs,
        limits: Limits,
        notes: Notes,
        may_begin: Callable[[], bool],
        end_with: Callable[[RwqError], object],
    ) -> None:
        self._invocations, self._outputs, self._limits = invocations, outputs, limits
        self._notes, self._may_begin, self._end_with = notes, may_begin, end_with
        self._runs: dict[int, Run] = {}
        # The slots in which one runs or is being started.
        self._slots: set[int] = set()
        self.passage = Passage(self._wake)
        give = self.passage.give
        stdout = None if outputs.stdout is None else partial(give, outputs.stdout)
        self._sinks = Outputs(stdout, partial(give, outputs.stderr))
        # What is read when somebody has read what was printed before.
        self._held: list[Stream] = []
        # Whether a process is being started, and is not known yet.
        self._is_starting = self._is_ended = self._is_closed = False
        # Since when the machine has had no room for a process.
        self._no_room_s: float | None = None
        self._selector = DefaultSelector()
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._selector.register(self._reader, EVENT_READ, self._note_wake)
        # When it is looked at the times of all commands.
        self._looks_s = 0.0

    @property
    def running(self) -> int:
        return len(self._slots)

    @property
    def runs(self) -> list[Run]:
        return list(self._runs.values())

    @property
    def is_full(self) -> bool:
        return self.passage.unwritten > _UNREAD_MAX_BYTES

    def end_all(self) -> None:
        """End all commands, also those that are being started."""
        self._is_ended = True
        for run in self.runs:
            self._end(run)

    def kill_all(self) -> None:
        for run in self.runs:
            run.kill()

    def close(self) -> None:
        """Kill all commands, and read no more."""
        self.kill_all()
        self._is_closed = True
        self._wake()

    def lose(self, job: Job) -> None:
        """End the command of a lost job, unless it has others that are not lost."""
        for run in self.runs:
            if job in run.jobs and all(each.loss is not None for each in run.jobs):
                self._end(run)

    def _end(self, run: Run) -> None:
        run.end()
        self._wake()

    def reap_orphans(self) -> None:
        """As process 1: reap what commands have left running and what has ended since."""
        with suppress(ChildProcessError):
            while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                # In this order: one that has been started since then is in the first or the second.
                if self._is_starting or found.si_pid in self._runs:
                    return
                os.waitpid(found.si_pid, os.WNOHANG)

    # The thread of the loop.

    def start(self, jobs: Sequence[Job], finish: Finish) -> Run | None:
        if not self._may_begin():
            finish(_unused(jobs))
            return None
        invocation = None
        try:
            invocation = self._invocations.of(jobs)
            self._is_starting = True
            self._slots.add(jobs[0].slot)
            run = Run(jobs, finish, invocation, self._sinks, self._limits)
        except BaseException as error:
            self._is_starting = False
            self._slots.discard(jobs[0].slot)
            if invocation is not None and invocation.file is not None:
                os.unlink(invocation.file)
            if not isinstance(error, BadArguments | CannotRun):
                raise
            finish(self._not_started(jobs, error))
            return None
        self._no_room_s = None
        # In this order: once its end can be seen, all of it is known.
        for stream in run.streams:
            self._selector.register(stream.fd, EVENT_READ, partial(self._read, stream))
        self._runs[run.pid] = run
        if run.pidfd is not None:
            self._selector.register(run.pidfd, EVENT_READ, partial(self._note_exit, run))
        self._is_starting = False
        if self._is_ended:
            self._end(run)
        elif run.due_s < self._looks_s:
            self._wake()
        return run

    def _not_started(self, jobs: Sequence[Job], error: Exception) -> JobEnd:
        if isinstance(error, BadArguments):
            return GiveUp(str(error).encode())
        if isinstance(error, Exhausted) and not self._is_ended:
            # When a process has ended, there may be room.
            now_s = time.monotonic()
            self._no_room_s = now_s if self._no_room_s is None or self._runs else self._no_room_s
            if now_s - self._no_room_s < _ROOM_S:
                return _unused(jobs)._replace(rest_s=_REST_S)
        assert isinstance(error, CannotRun)
        self._end_with(error)
        return _unused(jobs)

    # The thread that reads.

    def _wake(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._writer, b"x")

    def serve(self) -> None:
        try:
            while not self._is_closed:
                self._look()
        except BaseException:
            self._is_ended = True
            self.kill_all()
            for run in self.runs:
                run.finish(PutBack(front=True))
            raise
        finally:
            self._selector.close()

    def _look(self) -> None:
        for key, _ in self._selector.select(max(0.0, self._looks_s - time.monotonic())):
            key.data()
        if time.monotonic() >= self._looks_s:
            self._check_all()

    def _note_wake(self) -> None:
        os.read(self._reader, 4096)
        self._looks_s = 0.0
        held, self._held = self._held, []
        for stream in held:
            if not stream.has_ended:
                self._selector.register(stream.fd, EVENT_READ, partial(self._read, stream))

    def _note_exit(self, run: Run) -> None:
        assert run.pidfd is not None
        self._close(run.pidfd)
        run.has_exited = True
        if run.is_ending:
            self._looks_s = 0.0
        else:
            self._settle(run)

    def _read(self, stream: Stream) -> None:
        if stream.has_ended:
            return
        if stream.is_passed_on and self.passage.is_stalled:
            self._selector.unregister(stream.fd)
            self._held.append(stream)
        else:
            stream.read()
            if stream.has_ended:
                self._close(stream.fd)

    def _close(self, fd: int) -> None:
        # What is held is not registered.
        with suppress(KeyError):
            self._selector.unregister(fd)
        os.close(fd)

    def _check_all(self) -> None:
        for run in self.runs:
            run.check()
            if run.is_over:
                self._settle(run)
            elif not run.is_ending and run.is_newly_stopped():
                text = f"its command (process {run.pid}) is stopped"
                cure = f"kill -CONT {run.pid} lets it go on"
                self._notes.line(f"{escaped(run.jobs[0].item_id)}: {text}; {cure}")
        now_s = time.monotonic()
        is_ending = any(run.is_ending or run.pidfd is None for run in self.runs)
        often_s = _GONE_S if is_ending else _LOOK_S
        self._looks_s = min((now_s + often_s, *(run.due_s for run in self.runs)))

    def _settle(self, run: Run) -> None:
        """Say how a command has ended; what it has left running may go on writing."""
        run.reap()
        for stream in run.streams:
            if stream.has_ended:
                self._close(stream.fd)
        del self._runs[run.pid]
        self._slots.discard(run.jobs[0].slot)
        run.finish(self._judge(run))

    def _judge(self, run: Run) -> JobEnd:
        # What has arrived by now is followed before another item is taken.
        is_working = self._may_begin()
        code, tail = run.code or 0, run.stderr.tail
        said = b": " + tail if tail else b""
        if run.has_timed_out:
            return Failure(b"timed out after %gs" % (self._limits.max_time_s or 0) + said)
        if code == 0:
            if run.stdout.is_cut:
                text = "its command printed more than 1 MiB; only the first MiB is kept"
                self._notes.line(f"{escaped(run.jobs[0].item_id)}: {text} as its result")
            return Done(bytes(run.stdout.kept) if self._outputs.stdout is None else None)
        # The signal that stops the worker, such as that of Ctrl-C, also reaches a command that has
        # no session of its own yet.
        is_hit = -code in (signal.SIGINT, signal.SIGTERM) and run.run_s < _START_S
        if run.is_ending or (is_hit and not is_working):
            return PutBack(front=True)
        if code == PUT_BACK:
            return PutBack(rest_s=_REST_S)
        if code == GIVE_UP:
            return GiveUp(b"exit 100" + said)
        if code in NOT_RUN:
            hint = tail.decode("utf-8", "replace") or None
            self._end_with(CannotRun(f"the command cannot be run: exit {code}", hint))
            return PutBack(front=True)
        return Failure((b"exit %d" % code if code > 0 else _signal_name(-code)) + said)


def _unused(jobs: Sequence[Job]) -> PutBack:
    for job in jobs:
        job.has_started = False
    return PutBack(front=True)


def _signal_name(number: int) -> bytes:
    try:
        return signal.Signals(number).name.encode()
    except ValueError:
        return b"signal %d" % number
