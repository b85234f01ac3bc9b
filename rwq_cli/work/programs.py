"""What a command is, and how its process is started."""

import errno
import os
import resource
import shutil
import signal
from collections.abc import Mapping
from tempfile import TemporaryFile
from typing import IO, NamedTuple

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import os_reason

# Python ignores them; a command must not.
_DEFAULT_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ)
# The descriptors of a command while it runs; beside them the server, the terminal and the like.
_FILES_EACH, _FILES_BESIDE = 8, 64
# No process can be started now, whatever its command is.
_EXHAUSTED = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)


class CannotRun(InvalidArgument):
    """The command cannot be run, whatever the item."""

    code = "cannot-run"


class Exhausted(CannotRun):
    """The machine cannot start another process now."""


class BadArguments(Exception):
    """No command line can be made for this item; the message is the reason to bury it."""


class Invocation(NamedTuple):
    """What to run: the path of the program, its words with its own name, and what it reads.

    `file` is to be removed when it has ended.
    """

    program: bytes
    arguments: list[bytes]
    variables: Mapping[bytes, bytes]
    stdin: bytes | None
    file: bytes | None = None


def find_program(word: bytes, path: str) -> bytes:
    """The path of a program, given its name or a path, and the directories of PATH."""
    name = os.fsdecode(word)
    if found := shutil.which(name, path=path):
        return os.fsencode(found)
    if "/" not in name:
        reason, hint = "command not found", "the command follows --, as in: rwq work -- ./work"
    elif os.path.isdir(name):
        reason, hint = "it is a directory", "name a program"
    elif not os.path.exists(name):
        reason, hint = "no such file", "check its path"
    else:
        reason, hint = "permission denied", "chmod +x makes it executable"
    raise CannotRun(f"cannot run {name or repr(name)}: {reason}", hint)


def allow_open_files(children: int) -> None:
    needed = _FILES_EACH * children + _FILES_BESIDE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if needed <= soft or soft == resource.RLIM_INFINITY:
        return
    if needed > hard != resource.RLIM_INFINITY:
        raise InvalidArgument(
            f"{children:,} commands at once need {needed:,} open files, and the limit is {hard:,}",
            "run fewer at once, or raise the limit: ulimit -Hn",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def start(invocation: Invocation) -> tuple[int, list[int], list[int]]:
    """Start a process in a session of its own; returns its ID, and both ends of its outputs' pipes.

    It has no terminal, so that what asks on `/dev/tty` fails at once, and Ctrl-C does not reach it.
    The error says whether it cannot be run for any item, for this one, or only now.
    """
    readers: list[int] = []
    writers: list[int] = []
    actions: list[tuple[object, ...]] = []
    try:
        with _stdin(invocation.stdin) as stdin:
            actions.append((os.POSIX_SPAWN_DUP2, stdin.fileno(), 0))
            for number in (1, 2):
                for fds, fd in zip((readers, writers), os.pipe(), strict=True):
                    fds.append(fd)
                actions.append((os.POSIX_SPAWN_DUP2, writers[-1], number))
            # subprocess would take twice as long.
            pid = os.posix_spawn(
                invocation.program,
                invocation.arguments,
                invocation.variables,
                file_actions=actions,
                setsid=True,
                setsigmask=(),
                setsigdef=_DEFAULT_SIGNALS,
            )
    except (OSError, ValueError) as error:
        for fd in (*readers, *writers):
            os.close(fd)
        raise _failure(os.fsdecode(invocation.program), error)
    return pid, readers, writers


def _stdin(data: bytes | None) -> IO[bytes]:
    """A file in memory that holds the data: nobody has to feed it to the command."""
    if not data:
        return open(os.devnull, "rb")
    if hasattr(os, "memfd_create"):
        file: IO[bytes] = open(os.memfd_create("rwq-data"), "w+b")  # noqa: SIM115
    else:
        file = TemporaryFile()  # noqa: SIM115
    file.write(data)
    file.seek(0)
    return file


def _failure(name: str, error: OSError | ValueError) -> Exception:
    if not isinstance(error, OSError):
        return BadArguments("NUL cannot be part of an argument")
    if error.errno == errno.E2BIG:
        return BadArguments("the arguments are too long; see --input stdin and --input file")
    if error.errno in _EXHAUSTED:
        reason = f"cannot start another process: {os_reason(error)}"
        return Exhausted(reason, "run fewer at once: -j")
    # A file that is there, and is not found, is a script whose interpreter is not.
    is_script = error.errno == errno.ENOEXEC or (
        error.errno == errno.ENOENT and os.path.exists(name)
    )
    hint = "does its first line name an interpreter, such as #!/bin/sh?" if is_script else None
    return CannotRun(f"cannot run {name}: {os_reason(error)}", hint)
