"""One run of a command: its process, its output, its times and its end."""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum, auto
from math import inf
from threading import Lock

from rwq_cli.environment import os_reason
from rwq_cli.work.output import Head, LeftoverReader, Outputs, Pipe, WholeLines
from rwq_cli.work.programs import Exhausted, Invocation, start

# How often it is seen whether a command is stopped or is to be killed.
_LOOK_S = 0.5
# How often it is seen whether the processes of a command that is being ended are gone.
_GONE_S = 0.05
# What is read at once of a command that has ended: a pipe holds no more, and what it has started
# may go on writing.
_DRAIN_READS = 16


class Cause(Enum):
    """Why a command was ended by its worker."""

    TIMEOUT = auto()
    LOST = auto()
    STOP = auto()


class Run:
    """A command that runs; one thread waits for it, any thread may end it.

    Its `code` is negative for the signal that killed it, and None while it runs.
    """

    def __init__(
        self,
        invocation: Invocation,
        outputs: Outputs,
        *,
        max_time_s: float | None,
        kill_after_s: float,
    ) -> None:
        # Its processes are known by this, for no other command has the same.
        self._mark = b"RWQ_SESSION=" + invocation.variables[b"RWQ_SESSION"]
        self._kill_after_s = kill_after_s
        self.result = Head()
        self.stderr = WholeLines(outputs.stderr)
        self._stdout = None if outputs.stdout is None else WholeLines(outputs.stdout)
        self._pipes: list[Pipe] = []
        self.began_s = time.monotonic()
        try:
            for sink in (self._stdout or self.result, self.stderr):
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

    def wait(self, leftovers: LeftoverReader, tell_stopped: Callable[[], object]) -> None:
        """Read its output until it has ended, and end it when its time is over.

        `leftovers` goes on reading what it has left open. `tell_stopped` is called once if it is
        seen to be stopped, as by SIGSTOP.
        """
        poller = select.poll()
        fds = [pipe.fd for pipe in self._pipes]
        for fd in fds if self._pidfd is None else [*fds, self._pidfd]:
            poller.register(fd, select.POLLIN)
        has_exited = has_told = False
        while True:
            was_idle = not self._read(poller, self._pause_s(has_exited))
            has_exited = has_exited or self._has_exited()
            now_s = time.monotonic()
            if self.cause is None:
                if has_exited:
                    break
                if now_s >= self._times_out_s:
                    self.end(Cause.TIMEOUT)
                elif was_idle and not has_told and self._is_stopped():
                    has_told = True
                    tell_stopped()
            elif now_s >= self._kills_s and not self._is_killed:
                self.kill()
            elif has_exited and (self._is_killed or not processes_of(self.pid, self._mark)):
                break
        self._reap()
        if self._pidfd is not None:
            poller.unregister(self._pidfd)
            os.close(self._pidfd)
        reads = 0
        while self._is_open and reads < _DRAIN_READS and self._read(poller, 0):
            reads += 1
        # rwq may say something next, on a line of its own.
        self.stderr.flush(b"\n")
        if self._stdout is not None:
            self._stdout.flush()
        for pipe in self._pipes:
            if pipe.is_open:
                leftovers.take(pipe)

    def _pause_s(self, has_exited: bool) -> float:
        if self.cause is not None:
            ends_s, often = self._kills_s, has_exited or self._is_killed
        else:
            ends_s, often = self._times_out_s, self._pidfd is None and not self._is_open
        return max(0.0, min(_GONE_S if often else _LOOK_S, ends_s - time.monotonic()))

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
        """Send a signal to its group, and if it is being ended, to all that it has started."""
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

    def shift(self, seconds: float) -> None:
        """Let its time end later: it was suspended for so long."""
        self._times_out_s += seconds
        self._kills_s += seconds


def processes_of(root: int, mark: bytes) -> set[int]:
    """The living processes that a command has started, itself included.

    They are its descendants, and whatever has its mark in the environment: a process whose parent
    has ended is a child of another one. Without `/proc`, they are not found.
    """
    parents: dict[int, int] = {}
    found = {root}
    for pid in _pids():
        with suppress(OSError, ValueError, IndexError):
            # After the name, which may hold anything.
            state, parent = _read(pid, "stat").rpartition(b")")[2].split()[:2]
            if state == b"Z":
                continue
            parents[pid] = int(parent)
            if mark in _read(pid, "environ").split(b"\0"):
                found.add(pid)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found & parents.keys()


def _pids() -> Iterator[int]:
    with suppress(OSError):
        yield from (int(name) for name in os.listdir("/proc") if name.isdigit())


def _read(pid: int, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()
