"""What a command is, and how its process is started."""

import errno
import os
import shutil
import signal
import tempfile
from collections.abc import Mapping
from typing import NamedTuple

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import os_reason
from rwq_cli.streams import write_all

# Python ignores them; a command must not.
_DEFAULT_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)
)
# The descriptors of a command while it runs; beside them the server, the terminal and the like.
_FILES_EACH, _FILES_BESIDE = 6, 64
# No process can be started now, whatever its command is.
_EXHAUSTED = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)


class CannotRun(InvalidArgument):
    """The command cannot be run, whatever the item."""

    code = "cannot-run"


class BadArguments(Exception):
    """No command line can be made for this item; the message is the reason to bury it."""


class Exhausted(CannotRun):
    """The machine cannot start another process now."""


class Invocation(NamedTuple):
    """What to run: the path of the program, its words with its own name, and what it reads."""

    program: bytes
    arguments: list[bytes]
    variables: Mapping[bytes, bytes]
    stdin: bytes | None


def find_program(word: bytes, path: str) -> bytes:
    """The path of a program, given its name or a path, and the directories of PATH."""
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
        raise CannotRun(
            f"cannot run {name}: command not found",
            "the command follows --, as in: rwq work -q jobs -- ./work",
        )
    return os.fsencode(found)


def allow_open_files(children: int) -> None:
    """Raise the limit of open files, if that many children need more."""
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


def occupy_standard_files() -> None:
    """Open the null device as each of the files 0 to 2 that is closed: no pipe may be one."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(fd)


def start(invocation: Invocation, stdout: int, stderr: int) -> int:
    """Start a process in a session of its own; returns its ID, which is that of its group.

    It has no terminal, so that what asks on `/dev/tty` fails at once, and Ctrl-C does not reach it.
    `stdout` and `stderr` are descriptors. The error says whether it cannot be run for any item, for
    this one, or only now.
    """
    data: int | None = None
    try:
        data = _file_of(invocation.stdin) if invocation.stdin else None
        actions: list[tuple[object, ...]] = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
            if data is None
            else (os.POSIX_SPAWN_DUP2, data, 0),
            (os.POSIX_SPAWN_DUP2, stdout, 1),
            (os.POSIX_SPAWN_DUP2, stderr, 2),
        ]
        return os.posix_spawn(
            invocation.program,
            invocation.arguments,
            invocation.variables,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=_DEFAULT_SIGNALS,
        )
    except OSError as error:
        raise _failure(invocation, error)
    except ValueError:
        raise BadArguments("NUL cannot be part of an argument") from None
    finally:
        if data is not None:
            os.close(data)


def _file_of(data: bytes) -> int:
    """A file in memory that holds the data: nobody has to feed it to the command."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("rwq-data")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    write_all(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


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
