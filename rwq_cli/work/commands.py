"""Running the command of each job, in the thread that `WorkQueue.work` calls `run` in.

That thread starts the process, reads what it prints, ends it when its time is over, and says how it
ended. Any other thread may end it meanwhile.
"""

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from math import inf
from threading import RLock, Thread

from rwq_cli.core.work.held import taken_from
from rwq_cli.core.work.job import Done, Failure, GiveUp, Job, JobEnd, PutBack
from rwq_cli.output.escape import escaped
from rwq_cli.work.invocations import Invocations
from rwq_cli.work.notes import Notes
from rwq_cli.work.programs import BadArguments, BeingWritten, CannotRun, Exhausted
from rwq_cli.work.running import Limits, Outputs, Passage, Run, Stream, read_from

# The exit codes of a command that have a special meaning.
PUT_BACK, GIVE_UP, NOT_RUN = 75, 100, (126, 127)
# How long a slot stays empty after its command has put its item back, or could not be started
# because the machine had no room; and how long starting is tried while no other command runs.
_REST_S, _ROOM_S = 1.0, 5.0
# After how many failures that look alike it is said what may be wrong.
_MUTE_FAILURES = 3
# A command that has run for less may have been hit by a signal as it started.
_START_S = 1.0
# How long starting a process may take, while it holds the pipes of others open.
_LEFT_S = 0.05
# While more of their output than this is unread, no command is started.
_UNREAD_MAX_BYTES = 1 << 20


class Commands:
    """Runs the commands of a worker, each in the thread of its slot; any thread may end them.

    `may_begin` returns whether one may begin, `began` is called when one has, and `end_with` ends
    the worker when all have ended.
    """

    def __init__(
        self,
        invocations: Invocations,
        outputs: Outputs,
        limits: Limits,
        notes: Notes,
        may_begin: Callable[[], bool],
        began: Callable[[Run], object],
        end_with: Callable[[BaseException], object],
    ) -> None:
        self._invocations, self._limits, self._notes = invocations, limits, notes
        self._may_begin, self._began, self._end_with = may_begin, began, end_with
        # By slot; None while it is being started. While `turn` is held, none begins.
        self._runs: dict[int, Run | None] = {}
        self.turn = RLock()
        self.passage = Passage()
        give = self.passage.give
        stdout = None if outputs.stdout is None else partial(give, outputs.stdout)
        self._outputs = Outputs(stdout, partial(give, outputs.stderr))
        # Streams open after their command, and until when a process being started may be why.
        self._left: deque[tuple[float, Sequence[Stream]]] = deque()
        self._is_ended = self._is_killed = False
        # How many commands have failed alike, with this code and nothing on stderr; never again
        # after another end.
        self._mute_failures = 0.0
        self._mute_code: int | None = None
        # Since when the machine has had no room for a process.
        self._no_room_s: float | None = None

    @property
    def running(self) -> int:
        return len(self._runs)

    @property
    def runs(self) -> list[Run]:
        return [run for run in list(self._runs.values()) if run is not None]

    @property
    def is_full(self) -> bool:
        return self.passage.unwritten > _UNREAD_MAX_BYTES

    def end_all(self) -> None:
        """End all commands, also those that are being started."""
        self._is_ended = True
        for run in self.runs:
            run.end()

    def kill_all(self) -> None:
        """Kill all commands, also those that are being started."""
        self._is_killed = True
        for run in self.runs:
            run.kill()

    def stop_all(self) -> None:
        """Send SIGSTOP to all commands, after waiting for those that are being started."""
        with self.turn:
            give_up_s = time.monotonic() + _START_S
            while None in list(self._runs.values()) and time.monotonic() < give_up_s:
                time.sleep(0.001)
            for run in self.runs:
                run.left_s, run.due_s = run.due_s - time.monotonic(), inf
                # SIGTSTP does not stop what has no terminal.
                run.send(signal.SIGSTOP)

    def lose(self, job: Job) -> None:
        """End the command of a lost job, unless it has others that are not lost."""
        for run in self.runs:
            if job in run.jobs:
                self._end_if_lost(run)

    def _end_if_lost(self, run: Run) -> None:
        if all(job.loss is not None for job in run.jobs):
            run.end()

    def reap_orphans(self) -> None:
        """As PID 1, reap processes that commands have left running and that have ended since."""
        with suppress(ChildProcessError):
            while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                # Read after `waitid`: a command that was started since then is among them.
                if any(run is None or run.pid == ended.si_pid for run in list(self._runs.values())):
                    return
                os.waitpid(ended.si_pid, os.WNOHANG)

    def run(self, job: Job) -> JobEnd:
        """Run the command for a job; returns what becomes of it."""
        return self._attempt([job])

    def run_batch(self, jobs: Sequence[Job]) -> list[JobEnd]:
        """Run the command for some jobs of one queue; returns what becomes of each."""
        return self._halve(jobs, self._attempt(jobs))

    def _halve(self, jobs: Sequence[Job], end: JobEnd) -> list[JobEnd]:
        """Run the command again for the halves of a batch that failed, until what fails stands
        alone. If both halves fail, the next attempt decides, unless this is the last one of some:
        the command may just be unable to work now."""
        if not isinstance(end, Failure) or len(jobs) == 1:
            return [end] * len(jobs)
        halves = jobs[: len(jobs) // 2], jobs[len(jobs) // 2 :]
        ends = [self._attempt(half) if self._may_begin() else end for half in halves]
        if all(isinstance(half_end, Failure) for half_end in ends) and not any(
            job.is_last for job in jobs
        ):
            return [half_end for half, half_end in zip(halves, ends, strict=True) for _ in half]
        pairs = zip(halves, ends, strict=True)
        return [job_end for half, half_end in pairs for job_end in self._halve(half, half_end)]

    def _attempt(self, jobs: Sequence[Job]) -> JobEnd:
        number = jobs[0].slot
        try:
            with self.turn:
                if not self._may_begin():
                    return _unused(jobs)
                self._runs[number] = None
            return self._run(jobs, number)
        except BaseException as error:
            self.fail(error)
            if run := self._runs.get(number):
                run.kill()
            return PutBack(front=True)
        finally:
            self._runs.pop(number, None)

    def _run(self, jobs: Sequence[Job], number: int) -> JobEnd:
        invocation = None
        try:
            invocation = self._invocations.of(jobs)
            run = Run(jobs, invocation, self._outputs, self._limits)
        except BaseException as error:
            if invocation is not None and invocation.file is not None:
                os.unlink(invocation.file)
            if not isinstance(error, BadArguments | CannotRun):
                raise
            return self._not_started(jobs, error)
        self._runs[number], self._no_room_s = run, None
        self._began(run)
        # Whoever ended it, or lost its items, while it was being started could not see it.
        self._end_if_lost(run)
        if self._is_killed:
            run.kill()
        elif self._is_ended:
            run.end()
        self._follow(run)
        # A process that is being started holds the pipes of all others open for a moment.
        is_sure = None not in list(self._runs.values())
        if streams := run.reap(waits=is_sure):
            self._left.append((-inf if is_sure else time.monotonic() + _LEFT_S, streams))
        self.pass_left()
        return self._judge(run)

    def _not_started(self, jobs: Sequence[Job], error: Exception) -> JobEnd:
        if isinstance(error, BadArguments):
            return GiveUp(str(error).encode())
        if isinstance(error, Exhausted) and not self._is_ended:
            # When a process has ended, there may be room.
            now_s = time.monotonic()
            self._no_room_s = now_s if self._no_room_s is None or self.runs else self._no_room_s
            if now_s - self._no_room_s < _ROOM_S:
                return _unused(jobs)._replace(rest_s=_REST_S)
        if isinstance(error, BeingWritten):
            return _unused(jobs)._replace(rest_s=_REST_S)
        if self._invocations.task_dir is not None:
            # Other tasks may be programs that can be run.
            return Failure(str(error).encode("utf-8", "backslashreplace"))
        self._end_with(error)
        return _unused(jobs)

    def _follow(self, run: Run) -> None:
        while not run.wait(is_held=self.passage.is_stalled):
            if not run.is_ending and run.is_newly_stopped():
                text = f"its command (process {run.pid}) is stopped"
                cure = f"kill -CONT {run.pid} resumes it"
                self._notes.line(f"{escaped(run.jobs[0].item_id)}: {text}; {cure}")

    def pass_left(self) -> None:
        """Pass on what processes that commands have left running still print."""
        try:
            for until_s, streams in taken_from(self._left):
                if not self.passage.is_stalled:
                    streams = read_from(streams, 0)
                if streams and time.monotonic() < until_s:
                    self._left.append((until_s, streams))
                elif streams:
                    of_them = (streams,)
                    Thread(target=self._read_on, args=of_them, name="rwq-left", daemon=True).start()
        except BaseException as error:
            self.fail(error)

    def _read_on(self, streams: Sequence[Stream]) -> None:
        try:
            while streams:
                self.passage.wait_for_reader()
                streams = read_from(streams)
        except BaseException as error:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """End the worker with an unexpected error, and its commands, too."""
        self._end_with(error)
        self.end_all()

    def _judge(self, run: Run) -> JobEnd:
        # Signals that have arrived by now are handled before another item is taken.
        is_working = self._may_begin()
        code, tail = run.code or 0, run.stderr.tail
        last_words = b": " + tail if tail else b""
        if run.has_timed_out:
            return Failure(b"timed out after %gs" % (self._limits.max_time_s or 0) + last_words)
        if code == 0:
            self._mute_failures = -inf
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
            return GiveUp(b"exit 100" + last_words)
        if code in NOT_RUN:
            try:
                self._invocations.check_program()
            except CannotRun as error:
                self._end_with(error)
                return PutBack(front=True)
        self._note_mute(code, tail)
        return Failure((b"exit %d" % code if code > 0 else _signal_name(-code)) + last_words)

    def _note_mute(self, code: int, tail: bytes) -> None:
        """Say once what may be wrong if all commands so far have failed alike and said nothing."""
        is_alike = not tail and self._mute_code in (None, code)
        self._mute_failures = self._mute_failures + 1 if is_alike else -inf
        self._mute_code = code
        if self._mute_failures == _MUTE_FAILURES and self._invocations.ends_without_newline:
            text = f"{_MUTE_FAILURES} commands have ended with {code}, and said nothing on stderr"
            cure = "if they read lines, --input line adds the newline that the data lacks"
            self._notes.line(f"{text}; {cure}", is_error=False)


def _unused(jobs: Sequence[Job]) -> PutBack:
    for job in jobs:
        job.has_started = False
    return PutBack(front=True)


def _signal_name(number: int) -> bytes:
    try:
        return signal.Signals(number).name.encode()
    except ValueError:
        return b"signal %d" % number
