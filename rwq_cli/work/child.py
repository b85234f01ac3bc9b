"""One run of a command: a process in a group of its own, with its pipes."""

import errno
import os
import select
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from selectors import BaseSelector
from typing import NamedTuple

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import os_reason
from rwq_cli.work.pipes import Feeder, Head, Reader, Sink, Tail, WholeLines

# Python ignores them; a command must not.
_DEFAULT_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)
)
# The pipes of a command while it is started; beside them the server, the terminal and the like.
_FILES_EACH, _FILES_BESIDE = 4, 64
# No process can be started now, whatever its command is.
_EXHAUSTED = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)


class CannotRun(InvalidArgument):
    """The command cannot be run, whatever the item."""

    code = "cannot-run"


class BadArguments(Exception):
    """No command line can be made for this item; the message is the reason to bury it."""


class Exhausted(CannotRun):
    """The machine cannot start another process now."""


class Stdout(Enum):
    """Where the stdout of commands goes."""

    INHERITED = "inherited"
    STDERR = "stderr"
    PASSED_ON = "passed on"
    KEPT = "kept"


class Invocation(NamedTuple):
    """What to run for an item, or for a batch of them.

    Attributes:
        program: The path of the program.
        arguments: The words, the name of the program first.
        variables: The environment.
        stdin: What it reads; None for nothing.
    """

    program: bytes
    arguments: list[bytes]
    variables: Mapping[bytes, bytes]
    stdin: bytes | None


class Outputs(NamedTuple):
    """Where the output of commands goes.

    Attributes:
        stdout: What is done with stdout.
        to_stdout: Takes stdout, if it is passed on.
        to_stderr: Takes stderr.
    """

    stdout: Stdout
    to_stdout: Sink
    to_stderr: Sink


def find_program(word: bytes, path: str) -> bytes:
    """The path of a program.

    Args:
        word: Its name, or a path of it.
        path: The directories to search for a name, as in PATH.

    Raises:
        CannotRun: There is no such program, or it is not executable.
    """
    name = os.fsdecode(word) or "''"
    if "/" in name:
        if os.path.isdir(word):
            raise CannotRun(f"cannot run {name}: it is a directory", "name a program")
        if not os.path.exists(word):
            raise CannotRun(f"cannot run {name}: no such file", "check its path")
        if not os.access(word, os.X_OK):
            raise CannotRun(f"cannot run {name}: permission denied", "chmod +x makes it executable")
        return word
    found = shutil.which(name, path=path)
    if not found:
        raise CannotRun(f"cannot run {name}: command not found", _AFTER)
    return os.fsencode(found)


def allow_open_files(children: int) -> None:
    """Raise the limit of open files, if that many children need more.

    Raises:
        InvalidArgument: It cannot be raised that far.
    """
    import resource

    needed = _FILES_EACH * children + _FILES_BESIDE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or needed <= soft:
        return
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise InvalidArgument(
            f"{children:,} commands at once need {needed:,} open files, and the limit is {hard:,}",
            "run fewer at once, or raise the limit: ulimit -Hn",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


_STDOUT = 1
_AFTER = "the command follows --, as in: rwq work -q jobs -- ./work"


class Child:
    """A running command.

    Args:
        invocation: What to run.
        outputs: Where its output goes.
        selector: Watches its pipes after `watch`.

    Raises:
        CannotRun: It cannot be run for any item.
        BadArguments: Its arguments are too long, or contain NUL.
        Exhausted: The machine cannot start another process now.

    Attributes:
        pid: Its process ID, which is that of its group.
        result: What it wrote to stdout, if that is kept.
    """

    def __init__(self, invocation: Invocation, outputs: Outputs, selector: BaseSelector) -> None:
        self._lines = [WholeLines(outputs.to_stderr)]
        self._tail = Tail(self._lines[0])
        self.result = Head()
        self._feeder: Feeder | None = None
        self._readers: list[Reader] = []
        self._inherits_stdout = False
        try:
            actions = self._open_pipes(invocation, outputs, selector)
            self.pid = os.posix_spawn(
                invocation.program,
                invocation.arguments,
                invocation.variables,
                file_actions=actions,
                setpgroup=0,
                setsigmask=(),
                setsigdef=_DEFAULT_SIGNALS,
            )
        except OSError as error:
            self._cancel()
            raise _failure(invocation, error)
        except ValueError:
            self._cancel()
            raise BadArguments("NUL cannot be part of an argument") from None
        for pipe in (self._feeder, *self._readers):
            if pipe is not None:
                pipe.started()

    def watch(self) -> None:
        """Read its output as it comes; until then, it is read by `finish`."""
        for reader in self._readers:
            reader.watch()

    def _open_pipes(
        self, invocation: Invocation, outputs: Outputs, selector: BaseSelector
    ) -> list[tuple[object, ...]]:
        """Open the pipes; returns what the process does with its descriptors."""
        actions: list[tuple[object, ...]] = []
        if invocation.stdin:
            self._feeder = Feeder(selector, invocation.stdin)
            actions.append((os.POSIX_SPAWN_DUP2, self._feeder.read_fd, 0))
        else:
            actions.append((os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0))
        if outputs.stdout is Stdout.INHERITED:
            self._inherits_stdout = not _is_lost(_STDOUT)
            if not self._inherits_stdout:
                actions.append((os.POSIX_SPAWN_OPEN, _STDOUT, os.devnull, os.O_WRONLY, 0))
        elif outputs.stdout is Stdout.STDERR:
            # Before stderr becomes a pipe: what it prints is no reason.
            actions.append((os.POSIX_SPAWN_DUP2, 2, 1))
        else:
            sink: Sink = self.result
            if outputs.stdout is Stdout.PASSED_ON:
                self._lines.append(WholeLines(outputs.to_stdout))
                sink = self._lines[-1]
            actions.append((os.POSIX_SPAWN_DUP2, self._reader(selector, sink).write_fd, 1))
        actions.append((os.POSIX_SPAWN_DUP2, self._reader(selector, self._tail).write_fd, 2))
        return actions

    def _reader(self, selector: BaseSelector, sink: Sink) -> Reader:
        self._readers.append(Reader(selector, sink))
        return self._readers[-1]

    def _cancel(self) -> None:
        for pipe in (self._feeder, *self._readers):
            if pipe is not None:
                pipe.cancel()

    def send(self, number: int) -> None:
        """Send a signal to its process group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def poll(self, *, leave_group: bool) -> int | None:
        """Whether the command has ended.

        Args:
            leave_group: Whether what it has started may go on. If not, it has ended only when
                nothing holds its stderr any more: see `end_group`.

        Returns:
            Its exit code, negative for the signal that killed it; None while it runs.
        """
        if leave_group or not hasattr(os, "waitid"):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            return os.waitstatus_to_exitcode(status) if pid else None
        # Not reaped yet, so that its process group cannot become another one.
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
        self._readers[-1].drain()
        return None if self._readers[-1].is_open else self.end_group()

    def end_group(self) -> int | None:
        """Kill what is left of its process group; returns its exit code, if it has ended."""
        self.send(signal.SIGKILL)
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None

    def finish(self) -> None:
        """Read the rest of its output; it has ended."""
        if self._feeder is not None:
            self._feeder.close()
        for reader in self._readers:
            reader.drain()
        stderr, *stdout = self._lines
        # rwq may say something next, on a line of its own.
        stderr.flush(b"\n")
        for lines in stdout:
            lines.flush()

    def has_lost_stdout(self) -> bool:
        """Whether the stdout that it shares with rwq was closed while it ran.

        The next commands write to the null device instead.
        """
        return self._inherits_stdout and _is_lost(_STDOUT)

    @property
    def stderr_tail(self) -> bytes:
        """The end of its stderr."""
        return self._tail.value


def _failure(invocation: Invocation, error: OSError) -> Exception:
    """The error of a process that could not be started."""
    name = os.fsdecode(invocation.program)
    reason = os_reason(error)
    if error.errno == errno.E2BIG:
        return BadArguments("the arguments are too long; see --input stdin and --input file")
    if error.errno in _EXHAUSTED:
        return Exhausted(f"cannot start another process: {reason}", "run fewer at once: -j")
    # A file that is there, and is not found, is a script whose interpreter is not.
    is_script = error.errno == errno.ENOEXEC or (
        error.errno == errno.ENOENT and os.path.exists(invocation.program)
    )
    hint = "does its first line name an interpreter, such as #!/bin/sh?" if is_script else None
    return CannotRun(f"cannot run {name}: {reason}", hint)


def _is_lost(fd: int) -> bool:
    """Whether the other end of a pipe, or a terminal, is gone."""
    poller = select.poll()
    poller.register(fd, 0)
    return bool(poller.poll(0))
