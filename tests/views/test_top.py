"""The lines of `rwq top`: bars, rates, the header, and what fits into a line."""

import pytest

from rwq_cli.core.inspect.activity import Rates, Sample
from rwq_cli.core.inspect.queue_watch import QueueRow
from rwq_cli.core.inspect.server_status import ServerStatus
from rwq_cli.core.model import Counts, Item, State
from rwq_cli.core.server.durability import Durability
from rwq_cli.views.top import (
    QUEUE_COLUMNS,
    ShownServer,
    fitted,
    header,
    reason_parts,
    sorted_rows,
    sparkline,
    state_parts,
    wrapped_parts,
)


@pytest.mark.parametrize(
    ("values", "bars"),
    [
        ([], ""),
        ([0, 0], "▁▁"),
        ([0, 1, 4, 8], "▁▂▅█"),
        ([1, 1_000_000], "▂█"),
        ([9, *[0] * 17, 1, 2, 3], "▁" * 17 + "▃▆█"),
    ],
)
def test_bars_are_relative_to_the_highest_of_those_shown(values: list[int], bars: str) -> None:
    assert sparkline(values) == bars.rjust(20)


def text_of(parts: list[tuple[str, str | None]]) -> str:
    return "".join(text for text, _ in parts)


@pytest.mark.parametrize(
    ("room", "line"),
    [(20, "one  two  three"), (14, "one  two"), (7, "one"), (2, "o…")],
)
def test_what_does_not_fit_is_left_out_and_the_first_is_cut(room: int, line: str) -> None:
    assert text_of(fitted([("one", None), ("two", "red"), ("three", None)], room)) == line


def test_parts_are_wrapped_to_lines() -> None:
    parts = [(word, None) for word in ("one", "two", "three", "a-very-long-word", "five")]
    assert [text_of(line) for line in wrapped_parts(parts, 9)] == [
        *("one  two", "three", "a-very-l…", "five")
    ]


STATUS = ServerStatus("Valkey 8.1.1", 3 << 20, Durability(0, "noeviction", True, True))


def test_a_header_has_the_context_before_the_server() -> None:
    server = ShownServer("prod", "redis://db1", "bold red", is_read_only=True)
    assert header(server, STATUS, 200) == [
        ("prod", "bold red"),
        *((("  ", None)), ("redis://db1", None)),
        *((("  ", None)), ("read-only", None)),
        *((("  ", None)), ("Valkey 8.1.1", None)),
        *((("  ", None)), ("3.0 MiB", None)),
        *((("  ", None)), ("append-only file", None)),
    ]


@pytest.mark.parametrize(
    ("durability", "shown"),
    [
        (Durability(0, "noeviction", True, False), ("snapshots", None)),
        (Durability(0, "noeviction", False, False), ("no persistence", "red")),
        (Durability(0, "noeviction", None, False), ("persistence unknown", None)),
        (Durability(0, "noeviction", True, True, is_failing=True), ("cannot save", "red")),
    ],
)
def test_persistence_is_one_word_or_two(
    durability: Durability, shown: tuple[str, str | None]
) -> None:
    status = ServerStatus(None, None, durability)
    assert header(ShownServer("x"), status, 200)[2:] == [shown]


def test_memory_near_its_limit_is_red() -> None:
    for used, style in ((800, None), (950, "red")):
        status = ServerStatus(None, used, Durability(1000, "noeviction", True, True))
        assert header(ShownServer("x"), status, 200)[2] == (f"{used} B of 1000 B", style)


def row(name: bytes, waiting: int, age_s: int | None = None) -> QueueRow:
    sample = Sample(0.0, waiting, 3, 0, 0, None, None, None, False)
    return QueueRow(name, sample, 1, age_s, Rates(in_per_s=waiting / 10))


ROWS = [row(b"b", 2), row(b"a", 1, 7), row(b"c", 3, 5)]
COLUMNS = {column.name: column for column in QUEUE_COLUMNS}


@pytest.mark.parametrize(
    ("column", "reverse", "names"),
    [
        ("queue", False, b"abc"),
        ("queue", True, b"cba"),
        ("waiting", False, b"cba"),
        ("waiting", True, b"abc"),
        ("in_per_second", False, b"cba"),
        ("next_age_seconds", False, b"acb"),
        ("next_age_seconds", True, b"cab"),
    ],
)
def test_numbers_are_sorted_from_the_highest_and_unknown_ones_last(
    column: str, reverse: bool, names: bytes
) -> None:
    found = sorted_rows(ROWS, COLUMNS[column], reverse=reverse)
    assert b"".join(each.queue for each in found) == names


def test_running_is_what_is_not_abandoned() -> None:
    assert ROWS[0].running == 2
    assert COLUMNS["running"].get(ROWS[0]) == 2


def test_of_lengths_alone_processing_is_one_number() -> None:
    counts = Counts(b"jobs", 1, 20_000, 0, 3)
    assert state_parts(counts) == [
        *(("waiting 1", None), ("processing 20,000", None), ("delayed 0", None)),
        ("buried 3", "yellow"),
    ]


def test_states_that_are_rare_are_named_only_if_there_are_any() -> None:
    counts = Counts(b"jobs", 0, 2, 1, 0, leased=1, held=1, abandoned=0, due=0, lease_soonest_ms=90)
    assert text_of(state_parts(counts)) == "waiting 0leased 1abandoned 0held 1delayed 1buried 0"


def test_reasons_are_counted() -> None:
    reasons = [b"x"] * 3 + [b"y\x1b"] * 2 + [b"", b"1", b"2", b"3", b"4"]
    items = [Item(b"jobs", b"a", State.BURIED, reason=reason) for reason in reasons]
    assert [text for text, _ in reason_parts(items, 50)] == [
        *("the first 10 buried by reason:", "3 x", r"2 y\x1b", "1 (none)", "1 1", "1 2"),
        "2 others",
    ]
    assert reason_parts([], 0) == []
