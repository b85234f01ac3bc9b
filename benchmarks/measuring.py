"""Runs cases: the programs take turns, so that noise meets them alike."""

import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.filling import Filler
from benchmarks.longest import fill_list, longest_lrem_ms, longest_rows
from benchmarks.processes import Program, RunFailed
from benchmarks.results import Row, Sample, rows_of
from benchmarks.server import BenchServer, bench_server
from benchmarks.turn import Case, LongestCall, Turn


@dataclass
class Measured:
    """What one program's turns gave."""

    samples: list[Sample] = field(default_factory=list)
    longest_calls: dict[Case, list[LongestCall]] = field(default_factory=dict)


@dataclass(frozen=True)
class Results:
    """What a run of the benchmarks gave.

    Attributes:
        rows: Each program's rows, in the programs' order.
        longest_calls: For each program, by case name, the longest call of each turn.
        server: The server's name and version.
    """

    rows: list[list[Row]]
    longest_calls: list[dict[str, list[LongestCall]]]
    server: str


def measure(
    programs: Sequence[Program], cases: Sequence[Case], *, scale: float, rounds: int | None
) -> Results:
    """Run the cases.

    Args:
        programs: The versions of rwq.
        cases: The cases.
        scale: Full sizes are multiplied by this.
        rounds: How many turns each program has; None: as many as the case says, or one if the scale
            is below a tenth.
    """
    measured = [Measured() for _ in programs]
    lrems_ms: list[float] = []
    with bench_server() as server, bench_server() as lrem_server:
        fill_list(lrem_server)
        for case in cases:
            print(f"{case.name} …", file=sys.stderr, flush=True)
            turns = rounds or (case.rounds if scale >= 0.1 else 1)
            parts = _measure_case(
                case,
                server,
                programs,
                turns,
                scale,
                before_turn=lambda: lrems_ms.append(longest_lrem_ms(lrem_server)),
            )
            for whole, part in zip(measured, parts, strict=True) if parts else ():
                whole.samples += part.samples
                whole.longest_calls.update(part.longest_calls)
        name = _server_name(server)
    return Results(
        [rows_of(each.samples) + longest_rows(each.longest_calls, lrems_ms) for each in measured],
        [{case.name: calls for case, calls in each.longest_calls.items()} for each in measured],
        name,
    )


def _measure_case(
    case: Case,
    server: BenchServer,
    programs: Sequence[Program],
    rounds: int,
    scale: float,
    *,
    before_turn: Callable[[], object],
) -> list[Measured] | None:
    """What each program's turns gave; None if an older version cannot run this case."""
    measured = [Measured() for _ in programs]
    with tempfile.TemporaryDirectory(prefix="rwq-bench-") as folder:
        filler = Filler(Path(folder))
        for number in range(rounds):
            pairs = list(zip(programs, measured, strict=True))
            for program, into in reversed(pairs) if number % 2 else pairs:
                before_turn()
                try:
                    _take_turn(case, server, program, filler, scale, into)
                except RunFailed as failure:
                    if program is programs[-1]:
                        raise
                    print(f"{case.name} is left out: {failure}", file=sys.stderr)
                    return None
    return measured


def _take_turn(
    case: Case, server: BenchServer, program: Program, filler: Filler, scale: float, into: Measured
) -> None:
    with tempfile.TemporaryDirectory(prefix="rwq-bench-") as folder:
        turn = Turn(server, program, filler, scale, Path(folder))
        into.samples.extend(case.measure(turn))
        into.longest_calls.setdefault(case, []).append(turn.longest)


def _server_name(server: BenchServer) -> str:
    info = server.info("server")
    name = "valkey" if "valkey_version" in info else "redis"
    return f"{name} {info[f'{name}_version']}"
