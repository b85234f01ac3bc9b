"""Processes: the rwq that is measured, and how a command's time and memory are taken."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

_STOPWATCH = Path(__file__).with_name("stopwatch.py")
# Settings of the caller that would change what rwq does, or how fast: without compiled modules it
# needs a fifth more time to start.
_DROPPED_VARIABLES = (
    "RWQ_",
    "REDIS_URL",
    "COLUMNS",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR_FORCE",
    "PYTHONDONTWRITEBYTECODE",
)


@dataclass(frozen=True)
class Program:
    """One version of rwq.

    Attributes:
        label: What to call it in the tables.
        executable: Its `rwq`.
    """

    label: str
    executable: Path

    @cached_property
    def script_texts(self) -> dict[str, str]:
        """The texts of its Lua files by file name."""
        python = self.executable.with_name("python")
        code = "import rwq_cli; print(rwq_cli.__path__[0])"
        found = subprocess.run(
            [python, "-c", code], capture_output=True, text=True, check=True, cwd="/"
        )
        package = Path(found.stdout.strip())
        return {file.name: file.read_text("utf-8") for file in package.rglob("*.lua")}


def this_program() -> Program:
    """The rwq of this environment."""
    return Program("rwq", Path(sys.executable).with_name("rwq"))


@dataclass(frozen=True)
class Run:
    """How a process went.

    Attributes:
        seconds: Wall-clock time of the whole process.
        client_cpu_s: CPU time of the process.
        server_cpu_s: CPU time of the server meanwhile.
        peak_mib: Peak memory of the process.
    """

    seconds: float
    client_cpu_s: float
    peak_mib: float
    server_cpu_s: float = 0.0


class RunFailed(Exception):
    """A process failed."""


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
        stdin: A file for its stdin; None is an empty one.
        stdout: A file for its stdout; None discards it.
        statuses: The exit codes that are not a failure.
        variables: Environment variables to set for it.

    Raises:
        RunFailed: It ended with another exit code.
    """
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(_DROPPED_VARIABLES)
    }
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
            env={**environment, **(variables or {})},
        )
        if done.returncode not in statuses:
            raise RunFailed(f"{' '.join(command)} failed: {done.stderr.decode().strip()}")
        seconds, cpu_s, peak = map(float, result.read().split())
    # Linux counts in KiB, macOS in bytes.
    unit = 1024 if sys.platform == "linux" else 1024 * 1024
    return Run(seconds, cpu_s, peak / unit)
