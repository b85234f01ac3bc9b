"""The password of a context, read only when a connection is made."""

import os
import select
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

from rwq_cli.contexts.config import Context, ContextError
from rwq_cli.core.errors import InvalidArgument, ServerError
from rwq_cli.core.server.patience import connecting
from rwq_cli.descriptors import MARK, foreign_encoding, how_to_convert
from rwq_cli.environment import has_terminal, os_reason, raising_on_terminate, signals_held

# Users may have to unlock their password store first. What has to end sooner waits less.
TIMEOUT_S = 30.0
# A pipe holds at most this.
_BYTES_MAX = 65536


class PasswordCommandFailed(ServerError, code="password-command"): ...


def read_password_file(path: Path, option: str) -> str:
    """Read the first line of a file, or of a pipe such as bash's `<(pass show redis)`."""
    timeout_s = _timeout_s()
    read, deadline_s = b"", time.monotonic() + timeout_s
    try:
        # Opening a FIFO would wait for a writer.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as file:
            while b"\n" not in read:
                if not select.select([file], [], [], max(0.0, deadline_s - time.monotonic()))[0]:
                    raise OSError(f"nothing came within {round(timeout_s, 1):g} s")
                # None if another process has read it first.
                if (piece := file.read(_BYTES_MAX)) == b"":
                    break
                read += piece or b""
                if len(read) > _BYTES_MAX:
                    raise OSError("its first line is too long")
        return _checked_password(read.partition(b"\n")[0], read)
    except ValueError as error:
        reason = f"it is {error}"
    except OSError as error:
        reason = os_reason(error)
    raise InvalidArgument(f"cannot read the password file {path}: {reason}", f"check {option}")


def _timeout_s() -> float:
    """Return how long the password may take: less if the command has to end sooner."""
    return min(TIMEOUT_S, max(0.0, connecting.ends_s - time.monotonic()))


def _checked_password(line: bytes, text: bytes) -> str:
    """Return the password in a text's first line; raise ValueError with what it is instead."""
    if (encoding := foreign_encoding(text)) is not None:
        raise ValueError(f"{encoding}, not UTF-8; {how_to_convert(encoding)} converts it")
    line = line.removesuffix(b"\r").removeprefix(MARK)
    if not line:
        raise ValueError("empty")
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise ValueError("not UTF-8")


def password_of(context: Context, file: Path) -> str:
    """Read the password of a context that has a password file or command."""
    if context.password_command is None:
        path = file.parent / os.path.expanduser(context.password_file or "")
        if path.is_file() and path.stat().st_mode & 0o044:
            raise ContextError(
                f"other users can read {path}, the password_file of {context}", f"chmod 600 {path}"
            )
        return read_password_file(path, f"password_file of {context}")
    try:
        return _printed(context.password_command)
    except ValueError as error:
        raise PasswordCommandFailed(
            f"the password_command of {context} {error}",
            f"rwq context show {context.name} shows it: try it in a shell",
        )


def _printed(command: str) -> str:
    """Return the one line that a command prints; raise ValueError with what it did instead."""
    timeout_s = _timeout_s()
    with raising_on_terminate(), ExitStack() as at_end:
        with signals_held():
            process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                # On a terminal it may ask for a passphrase, which only the foreground process group
                # can do.
                process_group=None if has_terminal() else 0,
            )
            assert process.stdout is not None
            at_end.callback(process.stdout.close)
            at_end.callback(_end, process)
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise ValueError(f"did not end within {round(timeout_s, 1):g} s")
        # Its children may still hold its stdout open.
        os.set_blocking(process.stdout.fileno(), False)
        printed = process.stdout.read(_BYTES_MAX) or b""
    if (code := process.returncode) < 0:
        raise ValueError(f"was ended by signal {-code}")
    if code:
        raise ValueError(f"failed with exit code {code}")
    first, *more = printed.removesuffix(b"\n").split(b"\n")
    try:
        password = _checked_password(first, printed)
    except ValueError as error:
        what = "nothing" if str(error) == "empty" else f"something that is {error}"
        raise ValueError(f"printed {what}")
    if more:
        raise ValueError(f"printed {1 + len(more)} lines instead of one")
    return password


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill the command if it still runs, with its process group if it leads one."""
    if process.poll() is None:
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
