"""Measure rwq beside other tools, on servers of its own; or beside another version of rwq."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.cases import CASES
from benchmarks.measuring import Results, measure
from benchmarks.pauses import Pauses
from benchmarks.processes import Program, this_program
from benchmarks.results import Comparison, Row
from benchmarks.table import (
    print_comparisons,
    print_comparisons_markdown,
    print_markdown,
    print_rows,
)


def main() -> int:
    """Run the cases.

    Returns:
        1 if a limit was missed, or, with --against, if a row is more than 5 % worse; else 0. At a
        smaller scale than 1 always 0.
    """
    options = _parser().parse_args()
    programs = [this_program()]
    if options.against:
        programs.insert(0, Program("old", options.against.absolute()))
    cases = [CASES[name] for name in options.only or CASES]
    with Pauses() as pauses:
        results = measure(programs, cases, scale=options.scale, rounds=options.rounds)
    where = (
        f"{results.server}, Python {platform.python_version()}, {os.cpu_count()} cores, "
        f"{platform.system()} {platform.machine()}, scale {options.scale:g}; "
        f"a thread that only slept woke up to {pauses.longest_ms:.0f} ms late"
    )
    if options.json:
        options.json.write_text(json.dumps(_document(results, where), indent=2) + "\n")
    at_full_size = options.scale >= 1
    if options.against:
        good = _show_comparisons(results, where, markdown=options.markdown)
    else:
        good = _show_rows(
            results.rows[0], where, markdown=options.markdown, at_full_size=at_full_size
        )
    return 0 if good or not at_full_size else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="sizes times this (1.0)")
    parser.add_argument(
        "--only", action="append", choices=list(CASES), help="this case; repeatable"
    )
    parser.add_argument("--rounds", type=int, help="turns in each case, instead of its own number")
    parser.add_argument(
        "--against",
        type=Path,
        metavar="RWQ",
        help="another version's rwq: run both in turn and compare them",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    return parser


def _show_rows(rows: list[Row], where: str, *, markdown: bool, at_full_size: bool) -> bool:
    if markdown:
        print_markdown(rows, where)
    else:
        print_rows(rows, where, at_full_size=at_full_size)
    return all(row.is_within_limit for row in rows)


def _show_comparisons(results: Results, where: str, *, markdown: bool) -> bool:
    old, new = results.rows
    comparisons = [Comparison(*pair) for pair in zip(old, new, strict=True)]
    if markdown:
        print_comparisons_markdown(comparisons, where)
    else:
        print_comparisons(comparisons, where)
    return not any(comparison.is_worse for comparison in comparisons)


def _document(results: Results, where: str) -> dict[str, object]:
    """The figures as JSON; the last of `programs` is this version."""

    def figures(rows: Sequence[Row]) -> list[dict[str, object]]:
        return [
            {**asdict(row), "unit": row.unit.name, "ratio": row.ratio, "kept": row.is_within_limit}
            for row in rows
        ]

    return {
        "where": where,
        "programs": [
            {
                "rows": figures(rows),
                "longest_calls": {
                    name: [asdict(call) for call in turns] for name, turns in calls.items()
                },
            }
            for rows, calls in zip(results.rows, results.longest_calls, strict=True)
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
