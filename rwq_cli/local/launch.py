"""Starting the server program: its settings, its surroundings, and why it ended if it did."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from rwq_cli.core.errors import LocalServerError
from rwq_cli.local.directory import plain_errors

LOG_NAME = "server.log"
PID_NAME = "server.pid"
# The servers' own default names, from Redis 7 on and before.
APPEND_DIRECTORY_NAME = "appendonlydir"
APPEND_FILE_NAME = "appendonly.aof"

# The program only reads its settings and forks before it returns.
_LAUNCH_TIMEOUT_S = 30.0
# Not the rest: a password in the environment would stay readable for as long as the server runs.
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "HOME", "LANG", "LC_ALL", "TZ")

_LINES_TOLD = 3
_TAIL_BYTES = 8192
# What every start says, before the reason why one ended.
_NOISE = ("WARNING ", "Running mode=", "Server initialized")
_LOG_PREFIX = re.compile(r"^\d+:[A-Z] .*?:\d\d\.\d+ [.*#-] ")


def launch(
    program: Path, directory: Path, socket: Path, lock_descriptor: int, environ: Mapping[str, str]
) -> None:
    """Start a server that lives on by itself; it may not listen yet on return.

    Args:
        program: The server program.
        directory: The data's directory, absolute.
        socket: The path to listen at.
        lock_descriptor: The open, locked file that the server keeps for as long as it lives.
        environ: The environment, of which the server gets a few names.

    Raises:
        LocalServerError: The program could not be run, or refused its settings.
    """
    import subprocess

    with plain_errors("write in", directory):
        # A pid file is then always that of the server that holds the lock.
        (directory / PID_NAME).unlink(missing_ok=True)
    try:
        finished = subprocess.run(
            [program, *_settings(directory, socket)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env={name: environ[name] for name in _PASSED_ON if name in environ},
            pass_fds=(lock_descriptor,),
            # Until it has a session of its own, Ctrl-C would reach it.
            start_new_session=True,
            umask=0o077,
            timeout=_LAUNCH_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LocalServerError(
            f"{program} did not go to the background within {_LAUNCH_TIMEOUT_S:.0f} s",
            "is it a Valkey or Redis server?",
        ) from None
    except OSError as error:
        raise LocalServerError(
            f"cannot run the server {program}: {error.strerror or error}",
            "RWQ_LOCAL_SERVER=/path/to/valkey-server names another one",
        ) from error
    if finished.returncode != 0:
        reason = _last_lines(finished.stdout) or f"exit code {finished.returncode}"
        raise LocalServerError(
            f"the server {program} did not start: {reason}", _log_hint(directory)
        )


def log_bytes(directory: Path) -> int:
    """How long the server's log is now, in bytes; 0 if there is none."""
    try:
        return (directory / LOG_NAME).stat().st_size
    except OSError:
        return 0


def explain_exit(directory: Path, log_start_bytes: int) -> LocalServerError:
    """Make the error for a server that ended before it answered.

    Args:
        directory: The data's directory.
        log_start_bytes: How long the log was before the server was started, in bytes.
    """
    try:
        with open(directory / LOG_NAME, "rb") as log:
            end = log.seek(0, 2)
            log.seek(max(log_start_bytes, end - _TAIL_BYTES))
            reason = _last_lines(log.read())
    except OSError:
        reason = ""
    # On a full disk the log stays empty as well.
    return LocalServerError(
        f"the server ended while it started: {reason or _disk_state(directory)}",
        _log_hint(directory),
    )


def _settings(directory: Path, socket: Path) -> list[str]:
    settings = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "daemonize": "yes",
        "dir": str(directory),
        "pidfile": str(directory / PID_NAME),
        "logfile": str(directory / LOG_NAME),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
    }
    if (directory / APPEND_DIRECTORY_NAME).is_dir():
        # Redis before 7 does not see this directory and would start empty beside the data. It does
        # not know the setting either, and so refuses to start.
        settings["appenddirname"] = APPEND_DIRECTORY_NAME
    return [word for name, value in settings.items() for word in (f"--{name}", value)]


def _last_lines(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").splitlines()
    words = (_LOG_PREFIX.sub("", line).strip() for line in lines)
    told = [line for line in words if line and not line.startswith(_NOISE)]
    return "; ".join(told[-_LINES_TOLD:])


def _disk_state(directory: Path) -> str:
    try:
        facts = os.statvfs(directory)
    except OSError as error:
        return error.strerror or str(error)
    if facts.f_bavail == 0 or (facts.f_files and facts.f_favail == 0):
        return "no space left on the device"
    return "its log says nothing"


def _log_hint(directory: Path) -> str:
    return f"its log is {directory / LOG_NAME}"
