"""One run of a command: its process, its output, its times and its end, even if rwq is killed."""

import os
import signal
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from select import POLLHUP, POLLIN, poll
from threading import Condition, Lock
from typing import NamedTuple

from rwq_cli.core.items.schedule import REASON_BYTES_MAX
from rwq_cli.core.work.job import Job
from rwq_cli.processes import DeathWatch, processes_of
from rwq_cli.work.programs import Invocation, start

# The maximum size of a result.
RESULT_BYTES_MAX = 1 << 20
# How much of the end of stderr is kept: together with how the command failed, it is the reason.
_TAIL_BYTES = REASON_BYTES_MAX - 64
_READ_BYTES = 1 << 16
# How many times an output is read after its command has ended: a pipe holds no more.
_DRAIN_READS = 16
# How long a process that another thread starts may hold the pipes of this one open.
_DRAIN_S = 0.002

# How often to check whether a command is stopped or is to be killed; and whether the processes of
# one that is being ended are gone, or one that is not read can be read again.
_LOOK_S, _SOON_S = 0.25, 0.05
# How long a write may take before its reader counts as stalled.
_STALL_S = 0.1

Sink = Callable[[bytes], object]


class Outputs(NamedTuple):
    """Where the output of commands goes; without `stdout`, it is kept as the result."""

    stdout: Sink | None
    stderr: Sink


class Limits(NamedTuple):
    """Time limits of commands: in all, after SIGTERM, after the worker is stopped, or None."""

    max_time_s: float | None
    kill_after_s: float
    grace_s: float | None


class Stream:
    """An output of a command, read as it comes.

    It is passed on to a sink in whole lines, so that the output of commands that run at once is not
    mixed, and its end is `kept`; without one, its beginning is, and `is_cut` if there was more.
    """

    def __init__(self, fd: int, sink: Sink | None) -> None:
        self.fd, self._sink = fd, sink
        self.is_passed_on = sink is not None
        self.kept, self._rest = bytearray(), b""
        self.is_cut = self.has_ended = False

    def read(self, events: int = POLLIN) -> None:
        """Read what is available, which may be only the end."""
        data = os.read(self.fd, _READ_BYTES) if events & ~POLLHUP else b""
        if not data:
            self.has_ended = True
            os.close(self.fd)
        if self._sink is None:
            room = RESULT_BYTES_MAX - len(self.kept)
            self.kept += data[:room]
            self.is_cut = self.is_cut or len(data) > room
        elif data:
            self.kept += data
            del self.kept[:-_TAIL_BYTES]
            end = data.rfind(b"\n") + 1
            # A line without an end must not fill the memory.
            if end or len(self._rest) >= _READ_BYTES:
                self._sink(self._rest + data[:end])
                self._rest = b""
            self._rest += data[end:]

    def flush(self, end: bytes = b"") -> None:
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


def read_from(streams: Sequence[Stream], wait_ms: float | None = None) -> Sequence[Stream]:
    """Read what is available, or wait for some; returns the streams that have not ended."""
    by_fd, poller = {stream.fd: stream for stream in streams}, poll()
    for fd in by_fd:
        poller.register(fd, POLLIN)
    for fd, events in poller.poll(wait_ms):
        by_fd[fd].read(events)
    return [stream for stream in streams if not stream.has_ended]


class Passage:
    """Writes in a thread of its own, so that a stalled reader holds up nothing else.

    It writes all, in order: stdout and stderr may be the same pipe, and lines must not be mixed.
    """

    def __init__(self) -> None:
        self._turn = Condition()
        self._pending: deque[tuple[Sink, bytes]] = deque()
        # How many bytes are not yet written.
        self.unwritten = 0
        # True while what is given is only queued; nothing more should be read meanwhile.
        self.is_stalled = False

    def wait_for_reader(self) -> None:
        """If a reader stalls, wait until what was given has been written."""
        with self._turn:
            self._turn.wait_for(lambda: not self.is_stalled)

    def give(self, write: Sink, data: bytes) -> None:
        """Have data written; it is written when this returns, unless the reader stalls."""
        with self._turn:
            self._pending.append((write, data))
            self.unwritten += len(data)
            self._turn.notify_all()
            if not self.is_stalled:
                self.is_stalled = not self._turn.wait_for(lambda: not self.unwritten, _STALL_S)

    def serve(self) -> None:
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._pending)
                write, data = self._pending.popleft()
            write(data)
            with self._turn:
                self.unwritten -= len(data)
                if self.unwritten:
                    continue
                self.is_stalled = False
                self._turn.notify_all()


class Run:
    """A command that runs for some jobs; any thread may end it, and one reads and reaps it.

    Its `code` is negative for the signal that killed it, and None while it runs.
    """

    def __init__(
        self, jobs: Sequence[Job], invocation: Invocation, outputs: Outputs, limits: Limits
    ) -> None:
        self.jobs, self._file = jobs, invocation.file
        # This identifies its processes: no other command has the same.
        self._mark = invocation.variables[0]
        self._began_s = time.monotonic()
        # While the write ends of its pipes are open here, too, its streams do not end: its end is
        # seen once, not stream by stream.
        self.pid, readers, self._writers = start(invocation)
        self.stdout, self.stderr = map(Stream, readers, outputs)
        # The streams that are polled; those that are passed on are not while the reader stalls.
        self._streams = {self.stdout.fd: self.stdout, self.stderr.fd: self.stderr}
        self._poller, self._is_held = poll(), False
        for fd in readers:
            self._poller.register(fd, POLLIN)
        self._kill_after_s, self.run_s = limits.kill_after_s, 0.0
        # When its time is over, or it is to be killed.
        self.due_s = self._began_s + (limits.max_time_s or inf)
        # How much of that was left when it was stopped with the worker.
        self.left_s = inf
        # True if the worker is ending it, and if that is because its time was over.
        self.is_ending = self.has_timed_out = False
        self.code: int | None = None
        self._is_killed = self._is_stopped = self._has_exited = False
        # Its PID is its own only until it is reaped.
        self._lock = Lock()
        self._pidfd: int | None = None
        if hasattr(os, "pidfd_open"):
            # Without it, the end of the command is seen a moment later.
            with suppress(OSError):
                self._pidfd = os.pidfd_open(self.pid)
                self._poller.register(self._pidfd, POLLIN)

    def wait(self, *, is_held: bool) -> bool:
        """Read what it prints, for a moment; returns whether it has ended and, when being ended,
        all that it has started. Only its result is read while what is passed on `is_held`."""
        if is_held is not self._is_held:
            self._hold(is_held)
        is_soon = self.is_ending or self._is_held or self._pidfd is None
        wait_s = min(_SOON_S if is_soon else _LOOK_S, self.due_s - time.monotonic())
        self._read(max(0.0, wait_s))
        if self._pidfd is None:
            self._has_exited = self._wait_for(os.WNOHANG)
        if self._has_exited and not self.is_ending:
            return True
        if time.monotonic() >= self.due_s:
            if self.is_ending:
                self.kill()
            else:
                self.has_timed_out = self.end()
        return self._has_exited and (self._is_killed or not processes_of(self.pid, self._mark))

    def _read(self, wait_s: float) -> bool:
        """Read what is available; returns whether there was anything."""
        ready = self._poller.poll(wait_s * 1000)
        for fd, events in ready:
            stream = self._streams.get(fd)
            if stream is None:
                self._has_exited = True
            else:
                stream.read(events)
            if stream is None or stream.has_ended:
                self._poller.unregister(fd)
                self._streams.pop(fd, None)
        return bool(ready)

    def _hold(self, is_held: bool) -> None:
        self._is_held = is_held
        for fd, stream in self._streams.items():
            if stream.is_passed_on:
                # With no event, only the end of the pipe is reported, and it is still open here.
                self._poller.register(fd, 0 if is_held else POLLIN)

    def is_newly_stopped(self) -> bool:
        """Return True, once, if it is stopped, as by SIGSTOP."""
        flags = os.WSTOPPED | os.WNOHANG | os.WNOWAIT
        if self._is_stopped or not hasattr(os, "waitid"):
            return False
        # A process that has ended since the last look is not a child that could be stopped.
        with suppress(ChildProcessError):
            self._is_stopped = os.waitid(os.P_PID, self.pid, flags) is not None
        return self._is_stopped

    def reap(self, *, waits: bool) -> Sequence[Stream]:
        """Read what is left; returns the streams that processes it has left may go on writing to.
        If it `waits` for a moment, hardly anything else holds these open."""
        self._wait_for(0)
        self.run_s = time.monotonic() - self._began_s
        for fd in self._writers if self._pidfd is None else (*self._writers, self._pidfd):
            os.close(fd)
        self._hold(False)
        for _ in range(_DRAIN_READS):
            if not (self._streams and self._read(_DRAIN_S if waits else 0)):
                break
        # rwq may say something next, on a line of its own.
        self.stderr.flush(b"\n")
        self.stdout.flush()
        if self._file is not None:
            # The command may have removed it.
            with suppress(OSError):
                os.unlink(self._file)
        return list(self._streams.values())

    def _wait_for(self, flags: int) -> bool:
        """Wait for its process; returns whether it has ended, so that `code` is known."""
        with self._lock:
            if self.code is None:
                pid, status = os.waitpid(self.pid, flags)
                self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is not None

    def end(self) -> bool:
        """Send SIGTERM to all that it has started, SIGKILL later; False if it was ended before."""
        with self._lock:
            if self.is_ending or self.code is not None:
                return False
            self.due_s = time.monotonic() + self._kill_after_s
            self.is_ending = True
        self.send(signal.SIGTERM)
        # A stopped process cannot end.
        self.send(signal.SIGCONT)
        return True

    def kill(self) -> None:
        self.is_ending, self._is_killed, self.due_s = True, True, inf
        self.send(signal.SIGKILL)

    def send(self, number: int) -> None:
        """Send a signal to its group, and if it is being ended, to all that it has started."""
        with self._lock:
            if self.code is not None:
                return
            # What the worker itself stops is no news.
            self._is_stopped |= number == signal.SIGSTOP
            others = processes_of(self.pid, self._mark) if self.is_ending else set()
            for kill, pid in ((os.killpg, self.pid), *((os.kill, pid) for pid in others)):
                with suppress(ProcessLookupError, PermissionError):
                    if kill is os.killpg or os.getpgid(pid) != self.pid:
                        kill(pid, number)


# $1: how the environment entry by which commands are found begins; $2: how long they get, seconds.
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
    left running keeps running.
    """
    words = (b"rwq-leftovers", mark, b"%g" % kill_after_s)
    return DeathWatch((b"/bin/sh", b"-c", _SCRIPT.encode(), *words))
