"""The tables: for a terminal, and for docs/performance.md."""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.results import Comparison, Row


def print_rows(rows: Sequence[Row], where: str, *, at_full_size: bool) -> None:
    """The rows with their limits; limits are for the full size only."""
    table = _new_table(("row", "rwq", "against"), ("ratio", "limit", ""))
    for row in rows:
        missed = at_full_size and not row.is_within_limit
        table.add_row(
            row.name,
            row.shown_value,
            row.shown_reference,
            _ratio(row.ratio),
            f"≤ {row.limit:g}",
            "missed" if missed else "",
        )
    _print(table, where)


def print_comparisons(comparisons: Sequence[Comparison], where: str) -> None:
    """The rows of two versions side by side."""
    table = _new_table(("row",), ("old", "new", "new/old", "CPU of rwq", "CPU of the server", ""))
    for comparison in comparisons:
        cpu = comparison.cpu_ratios
        table.add_row(
            comparison.new.name,
            comparison.old.shown_value,
            comparison.new.shown_value,
            _ratio(comparison.ratio),
            *(map(_ratio, cpu) if cpu else ("", "")),
            "worse" if comparison.is_worse else "",
        )
    _print(table, where)


def print_markdown(rows: Sequence[Row], where: str) -> None:
    """The rows as docs/performance.md has them."""
    print(f"{where}\n\n| what | rwq | against | ratio | limit |\n| --- | --- | --- | --: | --: |")
    for row in rows:
        ratio = _ratio(row.ratio) if row.is_within_limit else f"**{_ratio(row.ratio)}**"
        values = f"{row.shown_value} | {row.shown_reference}"
        print(f"| {row.name} | {values} | {ratio} | ≤ {row.limit:g} |")


def print_comparisons_markdown(comparisons: Sequence[Comparison], where: str) -> None:
    """The rows of two versions, as Markdown."""
    print(f"{where}\n\n| what | old | new | new/old |\n| --- | --: | --: | --: |")
    for comparison in comparisons:
        ratio = _ratio(comparison.ratio)
        values = f"{comparison.old.shown_value} | {comparison.new.shown_value}"
        shown = f"**{ratio}**" if comparison.is_worse else ratio
        print(f"| {comparison.new.name} | {values} | {shown} |")


def _ratio(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}"


def _new_table(left: Sequence[str], right: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in left:
        table.add_column(title, no_wrap=True)
    for title in right:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _print(table: Table, where: str) -> None:
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    console.print(where)
    console.print(table)
