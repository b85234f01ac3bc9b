"""One run of a command: its process, its output, its times and its end, if rwq is killed, too."""

import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from math import inf
from threading import Lock, Thread
from typing import NamedTuple

from rwq_cli.core.items.schedule import REASON_BYTES_MAX
from rwq_cli.processes import processes_of
from rwq_cli.service.death_watch import DeathWatch
from rwq_cli.work.programs import Invocation, start

# What a result holds at most.
RESULT_BYTES_MAX = 1 << 20
# How much of the end of stderr is kept: with how the command failed, it is the reason.
_TAIL_BYTES = REASON_BYTES_MAX - 64
_READ_BYTES = 1 << 16
# How often it is seen whether a command is stopped or is to be killed, and whether the processes of
# one that is being ended are gone.
_LOOK_S, _GONE_S = 0.5, 0.05
# What is read at once of a command that has ended: a pipe holds no more, and what it has started
# may go on writing.
_DRAIN_READS = 16

Sink = Callable[[bytes], object]


class Outputs(NamedTuple):
    """Where the output of commands goes; without `stdout`, it is kept as the result."""

    stdout: Sink | None
    stderr: Sink


class Limits(NamedTuple):
    """How long commands run, after SIGTERM, and after the worker was stopped; None for no limit."""

    max_time_s: float | None
    kill_after_s: float
    grace_s: float | None


class Cause(Enum):
    """Why a command was ended by its worker."""

    TIMEOUT = auto()
    LOST = auto()
    STOP = auto()


class Stream:
    """An output of a command, read as it comes.

    To a sink it is passed on in whole lines, so that the output of commands that run at once is not
    mixed, and its end is `kept`; without one, its beginning, and `is_cut` if there was more.
    """

    def __init__(self, fd: int, sink: Sink | None) -> None:
        self._fd, self._sink = fd, sink
        self.kept, self._rest = bytearray(), b""
        self.is_cut = False

    def read(self) -> bool:
        """Read what there is; at the end, close it and return False."""
        data = os.read(self._fd, _READ_BYTES)
        if not data:
            os.close(self._fd)
        elif self._sink is None:
            room = RESULT_BYTES_MAX - len(self.kept)
            self.kept += data[:room]
            self.is_cut = self.is_cut or len(data) > room
        else:
            self.kept += data
            del self.kept[:-_TAIL_BYTES]
            end = data.rfind(b"\n") + 1
            # A line without an end must not fill the memory.
            if end or len(self._rest) >= _READ_BYTES:
                self._sink(self._rest + data[:end])
                self._rest = b""
            self._rest += data[end:]
        return bool(data)

    def flush(self, end: bytes = b"") -> None:
        """Pass on the rest, and this end of its line."""
        if self._rest and self._sink is not None:
            self._sink(self._rest + end)
            self._rest = b""

    @property
    def tail(self) -> bytes:
        """The last bytes, from the first whole character on."""
        kept = self.kept.strip()
        while kept[:1] and kept[0] & 0xC0 == 0x80:
            del kept[0]
        return bytes(kept)


class Run:
    """A command that runs; one thread waits for it, any thread may end it.

    Its `code` is negative for the signal that killed it, and None while it runs.
    """

    def __init__(self, invocation: Invocation, outputs: Outputs, limits: Limits) -> None:
        # Its processes are known by this, for no other command has the same.
        self._mark = b"RWQ_SESSION=" + invocation.variables[b"RWQ_SESSION"]
        self.began_s = time.monotonic()
        self.pid, fds = start(invocation)
        self.stdout, self.stderr = map(Stream, fds, outputs)
        # Those that are open.
        self._streams = dict(zip(fds, (self.stdout, self.stderr), strict=True))
        self._kill_after_s = limits.kill_after_s
        self._times_out_s = self.began_s + (limits.max_time_s or inf)
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

    def wait(self, tell_stopped: Callable[[], object]) -> None:
        """Read its output until it has ended, and end it when its time is over.

        `tell_stopped` is called once if it is seen to be stopped, as by SIGSTOP.
        """
        poller = select.poll()
        for fd in self._streams:
            poller.register(fd, select.POLLIN)
        if self._pidfd is not None:
            poller.register(self._pidfd, select.POLLIN)
        has_exited = has_told = False
        while True:
            ready = self._read(poller, self._pause_s(has_exited))
            if not has_exited and (self._pidfd is None or self._pidfd in ready):
                has_exited = self._has_exited()
                if has_exited and self._pidfd is not None:
                    # It would end each wait from now on.
                    poller.unregister(self._pidfd)
                    os.close(self._pidfd)
            now_s = time.monotonic()
            if self.cause is None:
                if has_exited:
                    break
                if now_s >= self._times_out_s:
                    self.end(Cause.TIMEOUT)
                elif not ready and not has_told and self._is_stopped():
                    has_told = True
                    tell_stopped()
            elif now_s >= self._kills_s and not self._is_killed:
                self.kill()
            elif has_exited and (self._is_killed or not processes_of(self.pid, self._mark)):
                break
        self._reap()
        for _ in range(_DRAIN_READS):
            if not (self._streams and self._read(poller, 0)):
                break
        # rwq may say something next, on a line of its own.
        self.stderr.flush(b"\n")
        self.stdout.flush()
        if self._streams:
            # The writes of what it has left running must not fail because it has ended.
            Thread(target=self._read_leftovers, args=(poller,), daemon=True).start()

    def _read_leftovers(self, poller: "select.poll") -> None:
        while self._streams:
            self._read(poller, None)

    def _pause_s(self, has_exited: bool) -> float:
        if self.cause is not None:
            ends_s, often = self._kills_s, has_exited or self._is_killed
        else:
            ends_s, often = self._times_out_s, self._pidfd is None and not self._streams
        return max(0.0, min(_GONE_S if often else _LOOK_S, ends_s - time.monotonic()))

    def _read(self, poller: "select.poll", seconds: float | None) -> list[int]:
        """Wait for output or the end, and read; returns which files were ready."""
        ready = [fd for fd, _ in poller.poll(None if seconds is None else seconds * 1000)]
        for fd in ready:
            if fd in self._streams and not self._streams[fd].read():
                poller.unregister(fd)
                del self._streams[fd]
        return ready

    def _has_exited(self) -> bool:
        """Whether its process has ended; it is not reaped yet, so that its ID stays its own."""
        if hasattr(os, "waitid"):
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        self._reap(os.WNOHANG)
        return self.code is not None

    def _reap(self, flags: int = 0) -> None:
        with self._lock:
            if self.code is None:
                pid, status = os.waitpid(self.pid, flags)
                self.code = os.waitstatus_to_exitcode(status) if pid else None

    def _is_stopped(self) -> bool:
        flags = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        # What has ended since the last look is no child that could be stopped.
        with suppress(ChildProcessError):
            return hasattr(os, "waitid") and os.waitid(os.P_PID, self.pid, flags) is not None
        return False

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
        self.cause = self.cause or Cause.STOP
        self._is_killed = True
        self.send(signal.SIGKILL)

    def send(self, number: int) -> None:
        """Send a signal to its group, and if it is being ended, to all that it has started."""
        with self._lock:
            if self.code is not None:
                return
            others = processes_of(self.pid, self._mark) if self.cause is not None else set()
            for kill, pid in ((os.killpg, self.pid), *((os.kill, pid) for pid in others)):
                with suppress(ProcessLookupError, PermissionError):
                    if kill is os.killpg or os.getpgid(pid) != self.pid:
                        kill(pid, number)

    def shift(self, seconds: float) -> None:
        """Let its time end later: it was suspended for so long."""
        self._times_out_s += seconds
        self._kills_s += seconds


# $1 is the entry of the environment by which commands are found, $2 how long they get, seconds.
# Neither the shell nor grep has that entry.
_SCRIPT = r"""
trap '' HUP INT QUIT TERM TSTP
read -r _
send() {
    found=
    for file in $(grep -lsF -e "$1" /proc/[0-9]*/environ); do
        read -r stat 2>/dev/null <"${file%environ}stat" || continue
        set -- "$1" "$2" ${stat##*) }
        [ "$3" = Z ] && continue
        found=1
        kill -s "$2" -- "-$5" 2>/dev/null
    done
}
send "$1" TERM
send "$1" CONT
[ "$found" ] || exit
sleep "$2"
send "$1" KILL
"""


def watch_leftovers(mark: bytes, kill_after_s: float) -> DeathWatch:
    """Send SIGTERM, and later SIGKILL, to the commands if this process is killed and cannot.

    They and what they have started are found by the mark in their environment, so that starting one
    costs nothing more; without /proc, they are not. When the watch is closed, what commands have
    left running goes on.
    """
    words = (b"rwq-leftovers", mark, b"%g" % kill_after_s)
    return DeathWatch((b"/bin/sh", b"-c", _SCRIPT.encode(), *words))
