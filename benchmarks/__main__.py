"""`python -m benchmarks`: starts its own servers, installs nothing, prints the table."""

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import Pauses, Row, server
from benchmarks.rows import ROWS, Longest


def main() -> int:
    """Run the rows; the exit code is 1 if a limit was not kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="sizes times this (1.0)")
    parser.add_argument("--only", action="append", choices=list(ROWS), help="this row; repeatable")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there, too")
    parser.add_argument("--markdown", action="store_true", help="print the table for the README")
    options = parser.parse_args()
    longest = Longest()
    rows: list[Row] = []
    with server() as bench, Pauses() as pauses:
        for name in options.only or ROWS:
            print(f"{name} …", file=sys.stderr, flush=True)
            rows.extend(ROWS[name](bench, options.scale, longest))
        version = bench.client.info("server")
    rows.append(longest.row("over all other rows"))
    name = "valkey" if "valkey_version" in version else "redis"
    where = (
        f"{name} {version[name + '_version']}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, "
        f"scale {options.scale:g}; "
        f"a thread that only slept was up to {pauses.longest_ms:.0f} ms late"
    )
    if options.markdown:
        _print_markdown(rows, where)
    else:
        _print(rows, where, evaluations=options.scale >= 1)
    if options.json:
        made = [{**asdict(row), "reached": row.reached} for row in rows]
        options.json.write_text(json.dumps({"where": where, "rows": made}, indent=2) + "\n")
    return 0 if all(row.reached for row in rows) or options.scale < 1 else 1


def _print(rows: list[Row], where: str, *, evaluations: bool) -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("row", "rwq", "against"):
        table.add_column(title, no_wrap=True)
    for title in ("ratio", "reach", ""):
        table.add_column(title, justify="right", no_wrap=True)
    for row in rows:
        sign = "≥" if row.at_least else "≤"
        table.add_row(
            row.name,
            row.measured,
            row.against,
            f"{row.ratio:.2f}",
            f"{sign} {row.limit:g}",
            "missed" if evaluations and not row.reached else "",
        )
    console = Console(width=None if sys.stdout.isatty() else 180, highlight=False)
    console.print(where)
    console.print(table)


def _print_markdown(rows: list[Row], where: str) -> None:
    print(f"{where}\n\n| what | rwq | against | ratio | limit |\n| --- | --- | --- | --: | --: |")
    for row in rows:
        sign = "≥" if row.at_least else "≤"
        ratio = f"{row.ratio:.2f}" if row.reached else f"**{row.ratio:.2f}**"
        print(f"| {row.name} | {row.measured} | {row.against} | {ratio} | {sign} {row.limit:g} |")


if __name__ == "__main__":
    sys.exit(main())
