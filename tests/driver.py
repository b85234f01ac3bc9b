"""Running rwq as its users do: in this process for speed, or as a process of its own."""

import io
import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import redis

from rwq_cli.cli.program import run
from rwq_cli.environment import Environment
from tests import processes
from tests.processes import COMMAND, TIMEOUT_S


@dataclass(frozen=True)
class Result:
    """What one run came to."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def lines(self) -> list[str]:
        """The lines of a table, without the blanks at their ends."""
        return [line.rstrip() for line in self.text.splitlines()]

    @property
    def notes(self) -> str:
        """stderr as text."""
        return self.err.decode()

    @property
    def json(self) -> Any:
        """stdout as one JSON document."""
        return json.loads(self.out)

    @property
    def jsonl(self) -> list[Any]:
        """stdout as a JSON value a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    def as_tuple(self) -> tuple[int, str, str]:
        """All of it, to be compared as a whole: exit code, stdout, stderr."""
        return self.code, self.text, self.notes

    def as_bytes(self) -> tuple[int, bytes, bytes]:
        return self.code, self.out, self.err


class Screen(io.BytesIO):
    """Takes what is written, and says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@dataclass
class Rwq:
    """rwq with a server and a queue in its environment, and nothing else of this machine."""

    variables: Mapping[str, str]
    home: Path
    started: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    def __call__(
        self,
        *words: str,
        stdin: bytes | BinaryIO = b"",
        variables: Mapping[str, str] | None = None,
        stdout: BinaryIO | None = None,
    ) -> Result:
        """Run in this process. `variables` are set besides; an empty one is unset.

        What goes to a `stdout` that is given is not in the result.
        """
        given = io.BytesIO(stdin) if isinstance(stdin, bytes) else stdin
        out, err = io.BytesIO(), io.BytesIO()
        code = _run(words, Environment(self._all(variables), given, stdout or out, err))
        return Result(code, out.getvalue(), err.getvalue())

    def on_screen(
        self,
        *words: str,
        variables: Mapping[str, str] | None = None,
        columns: int = 80,
    ) -> tuple[int, bytes]:
        """Run in this process with stdout and stderr that say that they are one terminal.

        The exit code, and all that was written to it.
        """
        screen = Screen()
        chosen = {"COLUMNS": str(columns), **(variables or {})}
        environment = Environment(self._all(chosen), io.BytesIO(), screen, screen)
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("COLUMNS", str(columns))
            code = _run(words, environment)
        return code, screen.getvalue()

    def process(
        self,
        *words: str | bytes,
        stdin: bytes | int = b"",
        variables: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> Result:
        """Run as a process, to its end."""
        process = processes.start(
            [*COMMAND, *words],
            env=self._all(variables),
            cwd=self.home,
            stdin=subprocess.PIPE if isinstance(stdin, bytes) else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.started.append(process)
        out, err = process.communicate(stdin if isinstance(stdin, bytes) else None, timeout_s)
        return Result(process.returncode, out, err)

    def start(
        self,
        *words: str | bytes,
        variables: Mapping[str, str] | None = None,
        command: Sequence[str] = COMMAND,
        **streams: Any,
    ) -> "subprocess.Popen[bytes]":
        """Start a process; it is ended with the test if it did not end before."""
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process = processes.start(
            [*command, *words], env=self._all(variables), cwd=self.home, **{**pipes, **streams}
        )
        self.started.append(process)
        return process

    def shell(self, script: str, variables: Mapping[str, str] | None = None) -> Result:
        """Run a bash script in which `rwq` is this one, with further environment variables."""
        program = self.home / "bin" / "rwq"
        if not program.exists():
            program.parent.mkdir()
            processes.write_program(program)
        done = subprocess.run(
            ["bash", "-c", script],
            env={
                **self._all(variables),
                "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
            },
            cwd=self.home,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def on_terminal(
        self,
        *words: str,
        type_in: Sequence[tuple[bytes, bytes]] = (),
        variables: Mapping[str, str] | None = None,
        columns: int = 80,
    ) -> tuple[int, bytes]:
        """Run as a process whose terminal is a new one.

        `type_in` is what to type once something has appeared: pairs of it and the keys.
        """
        from tests.terminal import Terminal

        terminal = Terminal(
            [*COMMAND, *words], self._all(variables), directory=self.home, columns=columns
        )
        self.started.append(terminal.process)
        try:
            written = terminal.converse(type_in)
            return terminal.end(), written
        finally:
            terminal.close()

    def asked(
        self,
        *words: str,
        type_in: Sequence[tuple[bytes, bytes]] = (),
        stdin: bytes | None = None,
        variables: Mapping[str, str] | None = None,
        columns: int = 80,
    ) -> tuple[int, bytes]:
        """As `on_terminal`, but in this process: for questions, and without Ctrl-C.

        `stdin` is what is piped into it; None leaves stdin on the terminal.
        """
        from tests.terminal import new_terminal, watched

        outer, end = new_terminal(columns)
        open_file = os.open

        def open_terminal(path: Any, *more: Any, **named: Any) -> int:
            return os.dup(end) if path == "/dev/tty" else open_file(path, *more, **named)

        terminal = watched(outer)
        with pytest.MonkeyPatch.context() as patched, ThreadPoolExecutor(1) as pool:
            seen = pool.submit(terminal.converse, type_in)
            patched.setattr(os, "open", open_terminal)
            with open(end, "wb") as screen:
                given = io.BytesIO(stdin or b"")
                code = _run(words, Environment(self._all(variables), given, screen, screen))
        terminal.child.close()
        return code, seen.result()

    def close(self) -> None:
        """End what was started and did not end."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
            process.wait()

    def _all(self, variables: Mapping[str, str] | None) -> dict[str, str]:
        merged = {**self.variables, **(variables or {})}
        return {name: value for name, value in merged.items() if value != ""}


def _run(words: Sequence[str], environment: Environment) -> int:
    """Run in this process; Typer writes help to the process's own stdout."""
    text = io.TextIOWrapper(environment.stdout, "utf-8", write_through=True)
    try:
        with redirect_stdout(text):
            return int(run(list(words), environment))
    finally:
        # As at the end of the program.
        with suppress(OSError):
            text.detach()


def next_line(stream: Any, timeout_s: float = TIMEOUT_S) -> bytes:
    """The next line of a pipe whose writer lives on.

    It is read byte by byte: what the stream had buffered of a further line would not be seen.
    """
    line = b""
    while not line.endswith(b"\n"):
        assert select.select([stream], [], [], timeout_s)[0], "nothing was written in time"
        byte = os.read(stream.fileno(), 1)
        if not byte:
            break
        line += byte
    return line


def until(condition: Callable[[], Any], what: str = "it", timeout_s: float = TIMEOUT_S) -> None:
    """Wait until something is so; a lost connection means not yet."""
    deadline = time.monotonic() + timeout_s
    while True:
        with suppress(redis.RedisError):
            if condition():
                return
        assert time.monotonic() < deadline, f"{what} did not come to be in time"
        time.sleep(0.005)


def state_of(pid: int) -> str:
    """The state of a process, as ps shows it: one letter, or none if there is no such process."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    return shown.stdout.decode().strip()[:1]


# The directory of undo files, as summaries name it.
UNDO = "~/.local/state/rwq/undo"


def complete(rwq: Rwq, *ids: str) -> None:
    """Lease and complete items, as a worker does: without an undo file."""
    rwq("lease", *(word for item_id in ids for word in ("--id", item_id)))
    assert rwq("complete", *ids).code == 0


def undo_files(rwq: Rwq) -> list[Path]:
    """The undo files that there are, oldest first."""
    files = (rwq.home / ".local/state/rwq/undo").glob("[0-9]*.jsonl*")
    numbered = ((int(file.name.split(".")[0]), file) for file in files)
    return [file for _, file in sorted(numbered)]


def configure(home: Path, text: str) -> Path:
    """Write the file of settings, and return its path."""
    path = home / ".config" / "rwq" / "config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path
