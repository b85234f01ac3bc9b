"""What surrounds a run: its streams and environment variables, in one object that tests replace."""

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
    """The world as one command sees it.

    Attributes:
        variables: The environment variables.
        stdin: Standard input, bytes.
        stdout: Standard output, bytes: results only.
        stderr: Standard error, bytes: everything else.
        stdin_is_closed: There is none, which to read is like an empty one.
        note_above: While progress is shown, writes a line above it; else None.
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
            # A supervisor may have closed any of them.
            sys.stdin.buffer if sys.stdin else open(os.devnull, "rb"),
            sys.stdout.buffer if sys.stdout else open(os.devnull, "wb"),
            sys.stderr.buffer if sys.stderr else open(os.devnull, "wb"),
            stdin_is_closed=sys.stdin is None,
        )

    @cached_property
    def stdin_is_terminal(self) -> bool:
        """Whether a person would have to type the input."""
        return self.stdin.isatty()

    @cached_property
    def stdout_is_terminal(self) -> bool:
        """Whether results go to a screen."""
        return self.stdout.isatty()

    @cached_property
    def stdout_is_pipe(self) -> bool:
        """Whether another program reads the results, which may be drawing on the same screen."""
        try:
            mode = os.fstat(self.stdout.fileno()).st_mode
        except (OSError, ValueError):
            return True
        return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)

    @cached_property
    def stderr_is_terminal(self) -> bool:
        """Whether notes go to a screen."""
        return self.stderr.isatty()

    @cached_property
    def allows_colour(self) -> bool:
        """Whether colour is wanted at all: NO_COLOR, set to anything, and TERM=dumb say no."""
        return "NO_COLOR" not in self.variables and self.variables.get("TERM") != "dumb"

    @property
    def width(self) -> int:
        """Columns of the screen."""
        return shutil.get_terminal_size((80, 24)).columns

    @property
    def stderr_width(self) -> int:
        """Columns of the screen that notes go to, which stdout may not be."""
        try:
            return int(self.variables.get("COLUMNS", "")) or self.width
        except ValueError:
            pass
        try:
            return os.get_terminal_size(self.stderr.fileno()).columns or self.width
        except (OSError, ValueError):
            return self.width

    def flush(self) -> None:
        """Send on what was written to stdout, before waiting for something else.

        Whether that fails is found out at the next write, by whoever writes.
        """
        with suppress(OSError):
            self.stdout.flush()

    def note(self, line: str) -> None:
        """Write a line to stderr; a stderr that is gone is no reason to stop."""
        with suppress(OSError):
            if self.note_above is not None:
                self.note_above(line)
                return
            self.stderr.write(line.encode("utf-8", "backslashreplace") + b"\n")
            self.stderr.flush()
