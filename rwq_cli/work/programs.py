"""What a command is, and how its process is started."""

import errno
import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import os_reason

# Python ignores them; a command must not.
_DEFAULT_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ)
# Descriptors for each running command; and for the server, the terminal and the like.
_FILES_EACH, _FILES_BESIDE = 6, 64
# How much of the first line of a program the kernel reads.
_LINE_BYTES = 256
# No process can be started now, whatever its command is.
_EXHAUSTED = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)


class CannotRun(InvalidArgument, code="cannot-run"):
    """The command cannot be run, whatever the item."""


class Exhausted(CannotRun):
    """The machine cannot start another process now."""


class BeingWritten(CannotRun):
    """The program is open for writing now."""


class BadArguments(Exception):
    """No command line can be made for this item; the message is the reason to bury it."""


class Invocation(NamedTuple):
    """What to run: the path of the program, its arguments from its name on, and what it reads.

    The first of the `variables`, each `NAME=VALUE`, is its mark, which no other command has; those
    `inherited` are the same for all. `file` is to be removed when the command has ended.
    """

    program: bytes
    arguments: list[bytes]
    variables: list[bytes]
    inherited: tuple[bytes, ...]
    stdin: bytes | None
    file: bytes | None = None


def find_program(word: bytes, path: str) -> bytes:
    """Find the path of a program, given its name or a path, and the directories of PATH."""
    name = os.fsdecode(word)
    if program := shutil.which(name, path=path):
        check_interpreter(program, path)
        return os.fsencode(program)
    if "/" not in name:
        reason, hint = "command not found", "the command follows --, as in: rwq work -- ./work"
    elif os.path.isdir(name):
        reason, hint = "it is a directory", "name a program"
    elif not os.path.exists(name):
        reason, hint = "no such file", "check its path"
    else:
        reason, hint = "permission denied", "chmod +x makes it executable"
    raise CannotRun(f"cannot run {name or repr(name)}: {reason}", hint)


def check_interpreter(program: str, path: str) -> None:
    """Raise `CannotRun` if the first line of a program names an interpreter that cannot be run."""
    line = b""
    # What may be executed need not be readable.
    with suppress(OSError), open(program, "rb") as file:
        line = file.readline(_LINE_BYTES)
    interpreter, *words = line.removeprefix(b"#!").split() or [b""]
    if not (line.startswith(b"#!") and interpreter):
        return
    names = [interpreter]
    if os.path.basename(interpreter) == b"env":
        # The first word that is neither an option nor a variable.
        names += [word for word in words if word[:1] != b"-" and b"=" not in word][:1]
    for name in map(os.fsdecode, names):
        if shutil.which(name, path=path) is None:
            why = f"its first line names {name}, which cannot be run"
            raise CannotRun(f"cannot run {program}: {why}", "install it, or correct the line")


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
    opened: list[int] = []
    try:
        opened.append(_stdin(invocation.stdin))
        opened += os.pipe()
        opened += os.pipe()
        stdin, out_reader, out_writer, err_reader, err_writer = opened
        pid = _spawner()(invocation, (stdin, out_writer, err_writer))
    except (OSError, ValueError) as error:
        for fd in opened:
            os.close(fd)
        raise _failure(os.fsdecode(invocation.program), error)
    os.close(stdin)
    return pid, [out_reader, err_reader], [out_writer, err_writer]


def _stdin(data: bytes | None) -> int:
    """Open a file in memory that holds the data: nothing has to feed it to the command."""
    if not data:
        return os.open(os.devnull, os.O_RDONLY)
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("rwq-data")
    else:
        with TemporaryFile() as file:
            fd = os.dup(file.fileno())
    # pwrite: the offset from which the command reads stays at the beginning.
    at = 0
    while at < len(data):
        at += os.pwrite(fd, data[at:], at)
    return fd


@cache
def _spawner() -> Callable[[Invocation, Sequence[int]], int]:
    """Return a function that starts a program with its first descriptors, and returns its PID.

    subprocess would take twice as long. os.posix_spawn holds the GIL until the program has been
    loaded, so that other threads wait for that long: on Linux, the C library is called directly.
    """
    try:
        import ctypes
    except ImportError:
        return _spawn
    if sys.platform != "linux":
        return _spawn
    # Calls through `quick` keep the GIL: they are so short that releasing it would take longer.
    libc, quick = ctypes.CDLL(None), ctypes.PyDLL(None)
    # Larger than those of any C library.
    attributes, mask, defaults = (ctypes.create_string_buffer(512) for _ in range(3))
    libc.posix_spawnattr_init(attributes)
    libc.sigemptyset(mask)
    libc.posix_spawnattr_setsigmask(attributes, mask)
    libc.sigemptyset(defaults)
    # For each signal not in the set, the new process would look up its disposition.
    for number in signal.valid_signals():
        if number in _DEFAULT_SIGNALS or signal.getsignal(number) is not signal.SIG_IGN:
            libc.sigaddset(defaults, int(number))
    libc.posix_spawnattr_setsigdefault(attributes, defaults)
    # POSIX_SPAWN_SETSIGDEF, _SETSIGMASK and _SETSID.
    libc.posix_spawnattr_setflags(attributes, ctypes.c_short(0x04 | 0x08 | 0x80))

    def words(texts: Sequence[bytes], more: int = 0) -> Any:
        if b"\0" in b"".join(texts):
            raise ValueError("embedded null byte")
        return (ctypes.c_char_p * (len(texts) + 1 + more))(*texts)

    # Cached: an array of that many would take as long to make each time as all else here.
    same = cache(words)
    size = ctypes.sizeof(ctypes.c_char_p)

    def spawn(invocation: Invocation, descriptors: Sequence[int]) -> int:
        program, argv = invocation.program, words(invocation.arguments)
        variables, inherited = invocation.variables, same(invocation.inherited)
        env = words(variables, len(inherited))
        ctypes.memmove(ctypes.byref(env, len(variables) * size), inherited, len(inherited) * size)
        pid, actions = ctypes.c_int(), ctypes.create_string_buffer(512)
        quick.posix_spawn_file_actions_init(actions)
        try:
            for number, fd in enumerate(descriptors):
                quick.posix_spawn_file_actions_adddup2(actions, fd, number)
            code = libc.posix_spawn(ctypes.byref(pid), program, actions, attributes, argv, env)
        finally:
            quick.posix_spawn_file_actions_destroy(actions)
        if code:
            raise OSError(code, os.strerror(code))
        return pid.value

    return spawn


def _spawn(invocation: Invocation, descriptors: Sequence[int]) -> int:
    return os.posix_spawn(
        invocation.program,
        invocation.arguments,
        dict(e.split(b"=", 1) for e in (*invocation.variables, *invocation.inherited)),
        file_actions=[(os.POSIX_SPAWN_DUP2, fd, to) for to, fd in enumerate(descriptors)],
        setsid=True,
        setsigmask=(),
        setsigdef=_DEFAULT_SIGNALS,
    )


def _failure(name: str, error: OSError | ValueError) -> Exception:
    if not isinstance(error, OSError):
        return BadArguments("NUL cannot be part of an argument")
    if error.errno == errno.E2BIG:
        return BadArguments("the arguments are too long; see --input stdin and --input file")
    if error.errno == errno.ETXTBSY:
        return BeingWritten(f"cannot run {name}: it is still being written")
    if error.errno in _EXHAUSTED:
        reason = f"cannot start another process: {os_reason(error)}"
        return Exhausted(reason, "run fewer at once: -j")
    # A file that exists and yet is not found is a script whose interpreter does not exist.
    is_script = error.errno == errno.ENOEXEC or (
        error.errno == errno.ENOENT and os.path.exists(name)
    )
    hint = "does its first line name an interpreter, such as #!/bin/sh?" if is_script else None
    return CannotRun(f"cannot run {name}: {os_reason(error)}", hint)
