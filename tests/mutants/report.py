"""The table of a run: what found each fault, and what finds nothing alone."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.mutants.faults import Fault
from tests.mutants.running import REST, Found


@dataclass
class Verdict:
    """What became of one fault.

    Attributes:
        fault: The fault.
        found: How many cells found it, by file.
        parts: The parts of the suite that ran.
        seconds: How long they took.
        hangs_in: What made the suite hang; "" if nothing did.
    """

    fault: Fault
    found: Counter[str] = field(default_factory=Counter)
    parts: list[str] = field(default_factory=list)
    seconds: float = 0.0
    hangs_in: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether it fails the run."""
        return not self.found or bool(self.hangs_in)

    def cells(self) -> list[str]:
        """The four columns of its line in a table."""
        files = ", ".join(f"{_short(file)} {n}" for file, n in self.found.most_common())
        if self.hangs_in:
            files = f"HANGS in {self.hangs_in}; {files}"
        return [
            self.fault.name,
            files or "NOTHING",
            str(self.found.total()),
            f"{self.seconds:.0f}",
        ]

    def add(self, part: str, found: Found) -> None:
        """What one part of the suite came to."""
        self.found += found.by_file()
        self.parts.append(part)
        self.seconds += found.seconds
        self.hangs_in = self.hangs_in or found.hangs_in

    def as_json(self) -> dict[str, Any]:
        return {
            "fault": self.fault.name,
            "found": dict(self.found),
            "parts": self.parts,
            "seconds": round(self.seconds),
            "hangs_in": self.hangs_in,
        }

    @classmethod
    def of_json(cls, entry: dict[str, Any], fault: Fault) -> "Verdict":
        return cls(**{**entry, "fault": fault, "found": Counter(entry["found"])})


HEAD = ("fault", "found by, with how many cells", "cells", "s")


def _short(file: str) -> str:
    return file.removeprefix("tests/").removesuffix(".py")


def lines(verdicts: Iterable[Verdict]) -> list[str]:
    """A line for each fault."""
    return [
        f"{name:<44} {cells:>5} {seconds:>4}s  {files}"
        for name, files, cells, seconds in (verdict.cells() for verdict in verdicts)
    ]


def conclusions(verdicts: Sequence[Verdict], fast_files: Sequence[str]) -> list[str]:
    """What one file alone finds, which files of the fast set find nothing alone, what is wrong."""
    alone: dict[str, list[str]] = {}
    for verdict in verdicts:
        if len(verdict.found) == 1:
            (file,) = verdict.found
            alone.setdefault(file, []).append(verdict.fault.name)
    said = [
        f"alone found by {_short(file)}: {', '.join(names)}"
        for file, names in sorted(alone.items(), key=lambda pair: -len(pair[1]))
    ]
    idle = [_short(file) for file in fast_files if file not in alone]
    said.append(f"of the fast sets, these find nothing alone: {', '.join(idle) or 'none'}")
    late = [verdict.fault.name for verdict in verdicts if REST in verdict.parts]
    said.append(f"not found by the fast sets: {', '.join(late) or 'none'}")
    hanging = [verdict.fault.name for verdict in verdicts if verdict.hangs_in]
    lost = [verdict.fault.name for verdict in verdicts if not verdict.found]
    said.append(f"these make the suite hang: {', '.join(hanging) or 'none'}")
    said.append(f"found by nothing: {', '.join(lost) or 'none'}")
    return said


def markdown(verdicts: Sequence[Verdict], code: str, ending: Sequence[str]) -> str:
    """A page with all of it."""
    rows = [HEAD, ("---", "---", "--:", "--:"), *(verdict.cells() for verdict in verdicts)]
    table = [f"| {' | '.join(row)} |" for row in rows]
    bullets = [f"- {line}" for line in ending]
    about = f"{len(verdicts)} faults in {code}, each alone; made by `python -m tests.mutants`."
    return "\n".join(["# What finds which fault", "", about, "", *table, "", *bullets, ""])
