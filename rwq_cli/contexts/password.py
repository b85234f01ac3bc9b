"""The password of a context, read only when a connection is made."""

import os
import signal
import subprocess
from pathlib import Path

from rwq_cli.contexts.model import Context
from rwq_cli.core.errors import InvalidArgument, ServerError
from rwq_cli.environment import has_terminal

# A person may have to unlock their password store first.
TIMEOUT_S = 30.0


class PasswordCommandFailed(ServerError):
    """The command that prints a context's password did not print one."""

    code = "password-command"


def read_password_file(path: Path, option: str) -> str:
    """The first line of a file.

    Raises:
        InvalidArgument: It cannot be read.
    """
    try:
        return path.read_bytes().split(b"\n")[0].rstrip(b"\r").decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InvalidArgument(
            f"cannot read the password file {path}: {reason.lower()}", f"check {option}"
        )


def password_of(context: Context, file: Path) -> str | None:
    """The password of a context; None if its URL has it, or there is none.

    Raises:
        InvalidArgument: Its password file cannot be read.
        PasswordCommandFailed: Its password command failed, hung, or printed something else.
    """
    if context.password_file is not None:
        path = file.parent / os.path.expanduser(context.password_file)
        return read_password_file(path, f"password_file of context {context.name}")
    if context.password_command is not None:
        return _run(context.name, context.password_command)
    return None


def _run(name: str, command: str) -> str:
    """Run a password command and return the one line that it prints."""
    # On a terminal it may ask for a passphrase, which only the foreground process group can do.
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        process_group=None if has_terminal() else 0,
    )
    try:
        process.wait(TIMEOUT_S)
        printed = _in_pipe(process)
    except subprocess.TimeoutExpired:
        raise _failed(name, f"did not end within {TIMEOUT_S:g} s")
    finally:
        _end(process)
    if process.returncode:
        how = f"failed with exit code {process.returncode}"
        if process.returncode < 0:
            how = f"was ended by signal {-process.returncode}"
        raise _failed(name, how)
    lines = printed.removesuffix(b"\n").removesuffix(b"\r").split(b"\n")
    if len(lines) > 1:
        raise _failed(name, f"printed {len(lines)} lines instead of one")
    if not lines[0]:
        raise _failed(name, "printed nothing")
    try:
        return lines[0].decode()
    except UnicodeDecodeError:
        raise _failed(name, "printed something that is not UTF-8")


def _in_pipe(process: "subprocess.Popen[bytes]") -> bytes:
    """What a command that has ended has printed; its children may still have its stdout."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    try:
        # A pipe holds no more.
        return os.read(process.stdout.fileno(), 65536)
    except BlockingIOError:
        return b""


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the command if it runs, with all that it has started if it is its own group."""
    if process.poll() is None:
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _failed(name: str, how: str) -> PasswordCommandFailed:
    return PasswordCommandFailed(
        f"the password_command of context {name} {how}",
        f"rwq context show {name} shows it: try it in a shell",
    )
