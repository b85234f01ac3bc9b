"""What a case is, and the turn in which one program runs it once."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.filling import QUEUE, Filler, Shape
from benchmarks.processes import Program, Run, timed
from benchmarks.results import Sample
from benchmarks.server import BenchServer

RAW_WALK = "a raw walk"


@dataclass
class LongestCall:
    """The server's longest single call in one turn."""

    milliseconds: float = 0.0
    command: str = ""


class Turn:
    """One turn of one program in one case.

    Args:
        server: The server.
        program: The rwq that is measured.
        filler: Fills the server.
        scale: Full sizes are multiplied by this.
        folder: For this turn's files, and for rwq's state.

    Attributes:
        server: The server.
        program: The rwq that is measured.
        folder: For this turn's files.
        longest: The longest call of all that `rwq` measured.
    """

    def __init__(
        self, server: BenchServer, program: Program, filler: Filler, scale: float, folder: Path
    ) -> None:
        self.server = server
        self.folder = folder
        self.longest = LongestCall()
        self.program = program
        self._filler = filler
        self._scale = scale

    def size(self, full_size: int) -> int:
        """A number of items at this run's scale."""
        return max(1, round(full_size * self._scale))

    def fill(
        self, *, waiting: int = 0, abandoned: int = 0, orphaned: int = 0, buried: int = 0
    ) -> dict[str, list[bytes]]:
        """Give the empty server a queue of this shape, and return its IDs by state."""
        return self._filler.fill(self.server, Shape(waiting, abandoned, orphaned, buried))

    def command(self, *words: str, url: str = "") -> list[str]:
        """A command line of rwq for this queue, on this server or another address of it."""
        return [str(self.program.executable), "-u", url or self.server.url, "-q", QUEUE, *words]

    def rwq(
        self,
        *words: str,
        stdin: Path | None = None,
        stdout: Path | None = None,
        statuses: tuple[int, ...] = (0,),
        url: str = "",
    ) -> Run:
        """Run a command of rwq on the queue, and time it."""
        self.server.reset_counters()
        cpu_before_s = self.server.cpu_s()
        run = timed(
            self.command(*words, url=url),
            stdin=stdin,
            stdout=stdout,
            statuses=statuses,
            variables={"XDG_STATE_HOME": str(self.folder / "state")},
        )
        run = replace(run, server_cpu_s=self.server.cpu_s() - cpu_before_s)
        milliseconds, command = self.server.longest_call()
        if milliseconds > self.longest.milliseconds:
            self.longest = LongestCall(milliseconds, self._file_name(command))
        return run

    def _file_name(self, command: str) -> str:
        """The file of a script that is named by its SHA-1; any other command as it is."""
        if len(command) != 40:
            return command
        text = self.server.script_text(command)
        for name, own_text in self.program.script_texts.items():
            if text.endswith(own_text):
                return name
        return command

    def raw_walk_s(self) -> float:
        """The time of reading the whole queue with redis-py, as a process of its own."""
        script = Path(__file__).with_name("raw_walk.py")
        command = [sys.executable, str(script), str(self.server.socket), QUEUE]
        return timed(command).seconds


@dataclass(frozen=True)
class Case:
    """Something to measure.

    Attributes:
        name: What `--only` calls it.
        title: What is measured, for the row of its longest call.
        measure: One turn; yields samples.
        rounds: How many turns each program has.
        own_longest_call: Its longest call is a row of its own, for it is larger than the others.
    """

    name: str
    title: str
    measure: Callable[[Turn], Iterator[Sample]]
    rounds: int = 3
    own_longest_call: bool = False
