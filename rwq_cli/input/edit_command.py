"""Runs the command of `rwq edit --run` on the data of items."""

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from rwq_cli.environment import os_reason
from rwq_cli.input.editor import EditorError, without_added_newline

# How many items one run of a command gets with `--lines`, at most.
LINES_MAX = 5000
# The codes of a shell for a command that it cannot run.
_CANNOT_RUN = (126, 127)
_REASON_BYTES = 200


class Refused(NamedTuple):
    """Why there is no new data."""

    reason: str


class EditCommand(NamedTuple):
    """A command line for `sh` that reads data on stdin and writes what replaces it.

    `by_lines` is for one that reads and writes many items, a line each.
    """

    line: str
    by_lines: bool
    variables: Mapping[str, str]

    def run(self, data: Sequence[bytes]) -> Iterator[bytes | Refused]:
        """The new data of each, or why there is none; `EditorError` if it cannot be run."""
        if self.by_lines:
            yield from self._run_on_lines(data)
            return
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            yield from pool.map(self._run_on_one, data)

    def _run_on_one(self, data: bytes) -> bytes | Refused:
        output = self._output(data)
        return output if isinstance(output, Refused) else without_added_newline(data, output)

    def _run_on_lines(self, data: Sequence[bytes]) -> list[bytes | Refused]:
        several = Refused("it has several lines, which --lines cannot tell from items")
        lines = [each for each in data if b"\n" not in each]
        output = self._output(b"".join(b"%b\n" % line for line in lines)) if lines else b""
        if not isinstance(output, Refused):
            found = output.split(b"\n")
            # After the last line end there is nothing; without it, the last line.
            found = found if found[-1] else found[:-1]
            if len(found) == len(lines):
                left = iter(found)
                return [several if b"\n" in each else next(left) for each in data]
            output = Refused(f"the command wrote {len(found):,} lines for {len(lines):,} items")
        return [several if b"\n" in each else output for each in data]

    def _output(self, data: bytes) -> bytes | Refused:
        try:
            done = subprocess.run(
                ["sh", "-c", self.line],
                input=data,
                env=dict(self.variables),
                capture_output=True,
                check=False,
            )
        except OSError as error:
            raise EditorError(f"cannot run sh: {os_reason(error)}")
        if not done.returncode:
            return done.stdout
        said = done.stderr[-_REASON_BYTES:].decode("utf-8", "backslashreplace").split("\n")
        reason = next((line for line in reversed(said) if line.strip()), "it said nothing")
        if done.returncode in _CANNOT_RUN:
            raise EditorError(f"cannot run the command: {reason}")
        ended = f"code {done.returncode}"
        if done.returncode < 0:
            ended = f"signal {-done.returncode}"
        return Refused(f"the command ended with {ended}: {reason.strip()}")
