"""One run of a command: its process, its output, its times and its end."""

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from math import inf
from threading import Lock

from rwq_cli.environment import os_reason
from rwq_cli.work.output import Head, LeftoverReader, Outputs, Pipe, WholeLines
from rwq_cli.work.programs import Exhausted, Invocation, start
from rwq_cli.work.trees import processes_of

# How often it is seen whether a command is stopped or is to be killed.
_LOOK_S = 0.5
# How often it is seen whether the processes of a command that is being ended are gone.
_GONE_S = 0.05
# What is read at once of a command that has ended: a pipe holds no more, and what it has started
# may go on writing.
_DRAIN_BYTES_MAX = 1 << 20


class Cause(Enum):
    """Why a command was ended by its worker."""

    TIMEOUT = "timeout"
    LOST = "lost"
    STOP = "stop"


class Run:
    """A command that runs; one thread waits for it, any thread may end it.

    Args:
        invocation: What to run.
        outputs: Where its output goes.
        mark: An entry of its environment that no other command has.
        max_time_s: How long it may run, seconds.
        kill_after_s: How long after SIGTERM it gets SIGKILL, seconds.

    Raises:
        CannotRun, BadArguments, Exhausted: See `start`.

    Attributes:
        pid: Its process ID.
        began_s: When it was started, by `time.monotonic`.
        cause: Why it was ended; None if it was not.
        code: Its exit code, negative for the signal that killed it; None while it runs.
        result: What it wrote to stdout, if that is kept.
    """

    def __init__(
        self,
        invocation: Invocation,
        outputs: Outputs,
        mark: bytes,
        *,
        max_time_s: float | None,
        kill_after_s: float,
    ) -> None:
        self._mark = mark
        self._kill_after_s = kill_after_s
        self.result = Head()
        self._stderr = WholeLines(outputs.stderr)
        self._stdout = None if outputs.stdout is None else WholeLines(outputs.stdout)
        self._pipes: list[Pipe] = []
        self.began_s = time.monotonic()
        try:
            for sink in (self._stdout or self.result, self._stderr):
                self._pipes.append(Pipe(sink))
            self.pid = start(invocation, *(pipe.write_fd for pipe in self._pipes))
        except BaseException as error:
            for pipe in self._pipes:
                pipe.close()
            if isinstance(error, OSError):
                raise Exhausted(f"cannot open a pipe: {os_reason(error)}", "run fewer at once: -j")
            raise
        finally:
            for pipe in self._pipes:
                pipe.started()
        self._times_out_s = self.began_s + (inf if max_time_s is None else max_time_s)
        self._kills_s = inf
        self.cause: Cause | None = None
        self.code: int | None = None
        self._is_killed = False
        # Its ID is its own until it is reaped.
        self._lock = Lock()
        self._pidfd: int | None = None
        if hasattr(os, "pidfd_open"):
            # Without it, the end of the command is seen a moment later.
            with suppress(OSError):
                self._pidfd = os.pidfd_open(self.pid)

    def wait(self, leftovers: LeftoverReader, stopped: Callable[[], object]) -> None:
        """Read its output until it has ended, and end it when its time is over.

        Args:
            leftovers: Goes on reading what it has left open.
            stopped: Called once if it is seen to be stopped, as by SIGSTOP.
        """
        poller = select.poll()
        for pipe in self._pipes:
            poller.register(pipe.fd, select.POLLIN)
        if self._pidfd is not None:
            poller.register(self._pidfd, select.POLLIN)
        has_exited = tells_stopped = False
        while True:
            was_idle = not self._read(poller, self._pause_s(has_exited))
            has_exited = has_exited or self._has_exited()
            now_s = time.monotonic()
            if self.cause is None:
                if has_exited:
                    break
                if now_s >= self._times_out_s:
                    self.end(Cause.TIMEOUT)
                elif was_idle and not tells_stopped and self._is_stopped():
                    tells_stopped = True
                    stopped()
            elif now_s >= self._kills_s and not self._is_killed:
                self.kill()
            elif has_exited and (self._is_killed or not self._processes()):
                break
        self._finish(poller, leftovers)

    def _pause_s(self, has_exited: bool) -> float:
        if self.cause is not None:
            longest_s = _GONE_S if has_exited or self._is_killed else _LOOK_S
            return max(0.0, min(longest_s, self._kills_s - time.monotonic()))
        longest_s = _LOOK_S if self._pidfd is not None or self._is_open else _GONE_S
        return max(0.0, min(longest_s, self._times_out_s - time.monotonic()))

    @property
    def _is_open(self) -> bool:
        return any(pipe.is_open for pipe in self._pipes)

    def _read(self, poller: "select.poll", seconds: float) -> int:
        """Wait for output or the end; returns how many files were ready."""
        ready = poller.poll(seconds * 1000)
        for fd, _ in ready:
            for pipe in self._pipes:
                if pipe.fd == fd and pipe.is_open and not pipe.read():
                    poller.unregister(fd)
        return len(ready)

    def _has_exited(self) -> bool:
        """Whether its process has ended; it is not reaped yet, so that its ID stays its own."""
        if hasattr(os, "waitid"):
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        self._reap(os.WNOHANG)
        return self.code is not None

    def _is_stopped(self) -> bool:
        flags = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        return hasattr(os, "waitid") and os.waitid(os.P_PID, self.pid, flags) is not None

    def _reap(self, flags: int = 0) -> None:
        with self._lock:
            if self.code is None:
                pid, status = os.waitpid(self.pid, flags)
                self.code = os.waitstatus_to_exitcode(status) if pid else None

    def _finish(self, poller: "select.poll", leftovers: LeftoverReader) -> None:
        """Read the rest of its output; it has ended."""
        self._reap()
        if self._pidfd is not None:
            poller.unregister(self._pidfd)
            os.close(self._pidfd)
        left = _DRAIN_BYTES_MAX
        while self._is_open and left > 0 and self._read(poller, 0):
            left -= 1 << 16
        # rwq may say something next, on a line of its own.
        self._stderr.flush(b"\n")
        if self._stdout is not None:
            self._stdout.flush()
        for pipe in self._pipes:
            if pipe.is_open:
                leftovers.take(pipe)

    def end(self, cause: Cause) -> None:
        """Send SIGTERM to all that it has started, and SIGKILL later."""
        with self._lock:
            if self.cause is not None or self.code is not None:
                return
            self._kills_s = time.monotonic() + self._kill_after_s
            self.cause = cause
        self.send(signal.SIGTERM)
        # What is stopped cannot end.
        self.send(signal.SIGCONT)

    def kill(self) -> None:
        """Send SIGKILL to all that it has started."""
        with self._lock:
            self.cause = self.cause or Cause.STOP
            self._is_killed = True
        self.send(signal.SIGKILL)

    def send(self, number: int) -> None:
        """Send a signal to all that it has started."""
        with self._lock:
            if self.code is not None:
                return
            others = processes_of(self.pid, self._mark) if self.cause is not None else set()
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)
            for pid in others:
                with suppress(ProcessLookupError, PermissionError):
                    if os.getpgid(pid) != self.pid:
                        os.kill(pid, number)

    def _processes(self) -> set[int]:
        return processes_of(self.pid, self._mark)

    def shift(self, seconds: float) -> None:
        """Let its time end later: it was suspended for so long."""
        self._times_out_s += seconds
        self._kills_s += seconds

    @property
    def stderr_tail(self) -> bytes:
        """The end of its stderr, from the first whole character on."""
        kept = self._stderr.tail.strip()
        continued = next((at for at, byte in enumerate(kept[:4]) if byte & 0xC0 != 0x80), 0)
        return kept[continued:]
