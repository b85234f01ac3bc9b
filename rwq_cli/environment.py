"""The streams and environment variables of a run, as one object that tests can replace."""

import os
import shutil
import stat
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO


@dataclass
class Environment:
    """The streams and environment variables of a run.

    Attributes:
        variables: The environment variables.
        stdin: Standard input, bytes.
        stdout: Standard output, bytes: results only.
        stderr: Standard error, bytes: everything else.
        stdin_is_closed: Whether stdin is closed; `stdin` is empty then.
        note_above: Writes a line above the progress line; None while there is none.
    """

    variables: Mapping[str, str]
    stdin: BinaryIO
    stdout: BinaryIO
    stderr: BinaryIO
    stdin_is_closed: bool = False
    note_above: Callable[[str], None] | None = None

    @classmethod
    def of_process(cls) -> "Environment":
        """The streams and variables of this process."""
        return cls(
            os.environ,
            # A supervisor may have closed any of these.
            sys.stdin.buffer if sys.stdin else open(os.devnull, "rb"),
            sys.stdout.buffer if sys.stdout else open(os.devnull, "wb"),
            sys.stderr.buffer if sys.stderr else open(os.devnull, "wb"),
            stdin_is_closed=sys.stdin is None,
        )

    @cached_property
    def stdin_is_terminal(self) -> bool:
        """Whether the input is typed."""
        return self.stdin.isatty()

    @cached_property
    def stdout_is_terminal(self) -> bool:
        """Whether results go to a terminal."""
        return self.stdout.isatty()

    @cached_property
    def stdout_is_pipe(self) -> bool:
        """Whether another program reads the results; it may write to the same terminal."""
        try:
            mode = os.fstat(self.stdout.fileno()).st_mode
        except (OSError, ValueError):
            return True
        return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)

    @cached_property
    def stderr_is_terminal(self) -> bool:
        """Whether notes go to a terminal."""
        return self.stderr.isatty()

    @cached_property
    def allows_colour(self) -> bool:
        """Whether the variables allow colour: no with NO_COLOR, set to anything, or TERM=dumb."""
        return "NO_COLOR" not in self.variables and self.variables.get("TERM") != "dumb"

    @property
    def width(self) -> int:
        """The width of the terminal, columns."""
        return shutil.get_terminal_size((80, 24)).columns

    @property
    def stderr_width(self) -> int:
        """The width of the terminal that notes go to, columns."""
        try:
            return int(self.variables.get("COLUMNS", "")) or self.width
        except ValueError:
            pass
        try:
            return os.get_terminal_size(self.stderr.fileno()).columns or self.width
        except (OSError, ValueError):
            return self.width

    def flush(self) -> None:
        """Flush stdout before waiting; if that fails, the next write raises."""
        with suppress(OSError):
            self.stdout.flush()

    def note(self, line: str) -> None:
        """Write a line to stderr, if it is still open."""
        with suppress(OSError):
            if self.note_above is not None:
                self.note_above(line)
                return
            self.stderr.write(line.encode("utf-8", "backslashreplace") + b"\n")
            self.stderr.flush()
