"""The password of a context, read only when a connection is made."""

import os
import select
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from rwq_cli.contexts.file import Context
from rwq_cli.core.errors import InvalidArgument, ServerError
from rwq_cli.environment import has_terminal, os_reason

# A person may have to unlock their password store first.
TIMEOUT_S = 30.0
# A pipe holds no more.
_BYTES_MAX = 65536


class PasswordCommandFailed(ServerError):
    """The command that prints a context's password did not print one."""

    code = "password-command"


def read_password_file(path: Path, option: str) -> str:
    """The first line of a file, or of a pipe such as bash's `<(pass show redis)`."""
    try:
        # Opening a FIFO would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            line = _first_line(descriptor)
        finally:
            os.close(descriptor)
        return line.rstrip(b"\r").decode("utf-8-sig")
    except UnicodeDecodeError:
        reason = "it is not UTF-8"
    except OSError as error:
        reason = os_reason(error)
    raise InvalidArgument(f"cannot read the password file {path}: {reason}", f"check {option}")


def _first_line(descriptor: int) -> bytes:
    """What stands before the first line end; raises OSError if that does not come, or is long."""
    read, deadline_s = b"", time.monotonic() + TIMEOUT_S
    while b"\n" not in read:
        if not select.select([descriptor], [], [], max(0.0, deadline_s - time.monotonic()))[0]:
            raise OSError(f"nothing came within {TIMEOUT_S:g} s")
        with suppress(BlockingIOError):
            if not (piece := os.read(descriptor, _BYTES_MAX)):
                break
            read += piece
        if len(read) > _BYTES_MAX:
            raise OSError("its first line is too long")
    return read.partition(b"\n")[0]


def password_of(context: Context, file: Path) -> str | None:
    """The password of a context; None if its URL has it, or there is none."""
    if context.password_file is not None:
        path = file.parent / os.path.expanduser(context.password_file)
        return read_password_file(path, f"password_file of context {context.name}")
    if context.password_command is None:
        return None
    try:
        return _printed(context.password_command)
    except ValueError as error:
        raise PasswordCommandFailed(
            f"the password_command of context {context.name} {error}",
            f"rwq context show {context.name} shows it: try it in a shell",
        )


def _printed(command: str) -> str:
    """The one line that a password command prints; raises ValueError with what it did instead."""
    # On a terminal it may ask for a passphrase, which only the foreground process group can do.
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        process_group=None if has_terminal() else 0,
    )
    assert process.stdout is not None
    try:
        process.wait(TIMEOUT_S)
        # Its children may still have its stdout.
        os.set_blocking(process.stdout.fileno(), False)
        printed = process.stdout.read(_BYTES_MAX) or b""
    except subprocess.TimeoutExpired:
        raise ValueError(f"did not end within {TIMEOUT_S:g} s")
    finally:
        _end(process)
    if process.returncode < 0:
        raise ValueError(f"was ended by signal {-process.returncode}")
    if process.returncode:
        raise ValueError(f"failed with exit code {process.returncode}")
    lines = printed.removesuffix(b"\n").removesuffix(b"\r").split(b"\n")
    if len(lines) > 1:
        raise ValueError(f"printed {len(lines)} lines instead of one")
    if not lines[0]:
        raise ValueError("printed nothing")
    try:
        return lines[0].decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("printed something that is not UTF-8")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the command if it runs, with all that it has started if it is its own group."""
    if process.poll() is None:
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
