"""The lines of `rwq top`: bars, rates, the header, and what fits into a line."""

import pytest

from rwq_cli.core.inspect.rates import Rates, Sample
from rwq_cli.core.model import Counts
from rwq_cli.views.counts import COUNT_FIELDS
from rwq_cli.views.history import sparkline
from rwq_cli.views.top import QUEUE_COLUMNS, QueueRow, sorted_rows, state_parts


@pytest.mark.parametrize(
    ("values", "bars"),
    [
        ([], ""),
        ([0, 0], "▁▁"),
        ([0, 1, 4, 8], "▁▂▅█"),
        ([1, 1_000_000], "▂█"),
        ([3, None, 0], "█ ▁"),
    ],
)
def test_bars_are_relative_to_the_highest(values: list[float | None], bars: str) -> None:
    assert sparkline(values) == bars


def row(name: bytes, waiting: int, age_s: int | None = None) -> QueueRow:
    sample = Sample(0.0, waiting, 3, 0, 0)
    return QueueRow(name, sample, 2, 1, False, age_s, Rates(added_per_s=waiting / 10))


ROWS = [row(b"b", 2), row(b"a", 1, 7), row(b"c", 3, 5)]
COLUMNS = {column.name: column for column in QUEUE_COLUMNS}


@pytest.mark.parametrize(
    ("column", "reverse", "names"),
    [
        ("queue", False, b"abc"),
        ("queue", True, b"cba"),
        ("waiting", False, b"cba"),
        ("waiting", True, b"abc"),
        ("added_per_second", False, b"cba"),
        ("next_age_seconds", False, b"acb"),
        ("next_age_seconds", True, b"cab"),
    ],
)
def test_numbers_sort_highest_first_unknown_last(column: str, reverse: bool, names: bytes) -> None:
    found = sorted_rows(ROWS, COLUMNS[column], reverse=reverse)
    assert b"".join(each.queue for each in found) == names


def test_counts_that_may_be_more_say_so_in_red() -> None:
    more = row(b"b", 2)._replace(abandoned=41_000, running=7, is_least=True)
    assert [COLUMNS[name].cell(more) for name in ("running", "abandoned")] == [">7", ">41,000"]
    none = more._replace(abandoned=0)
    style = COLUMNS["abandoned"].style
    assert style is not None
    assert [style(each) for each in (more, none, row(b"b", 2))] == ["red"] * 3
    counts = Counts(b"b", 2, 50_000, 0, 0, abandoned=41_000, is_least=True)
    assert COUNT_FIELDS["abandoned"].cell(counts) == ">41,000"
    assert ("abandoned >41,000", "red") in state_parts(counts)
