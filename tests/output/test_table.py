"""Which columns of a table are shown, and how wide."""

from collections.abc import Sequence
from typing import Any

import pytest

from rwq_cli.output.fit import fit
from rwq_cli.output.report import Column, Cut
from rwq_cli.output.table import table_lines

ID: Column[Any] = Column("ID", str, cut=Cut.MIDDLE)
AGE: Column[Any] = Column("AGE", str, rank=1)
SIZE: Column[Any] = Column("SIZE", str, rank=2)
DATA: Column[Any] = Column("DATA", str, rank=3, cut=Cut.END)
HOLDER: Column[Any] = Column("HOLDER", str, rank=6, cut=Cut.MIDDLE)
STATE: Column[Any] = Column("STATE", str, rank=9)
COLUMNS = (ID, STATE, HOLDER, AGE, SIZE, DATA)
NATURAL = (32, 9, 20, 8, 7, 200)


def fitted(room: int, natural: Sequence[int] = NATURAL) -> dict[str, int]:
    """The widths of the columns that fit, by title."""
    widths = fit(COLUMNS, natural, range(len(COLUMNS)), room)
    return {COLUMNS[index].title: width for index, width in widths.items()}


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (300, {"ID": 32, "STATE": 9, "HOLDER": 20, "AGE": 8, "SIZE": 7, "DATA": 200}),
        (120, {"ID": 32, "STATE": 9, "HOLDER": 20, "AGE": 8, "SIZE": 7, "DATA": 34}),
        (96, {"ID": 32, "STATE": 9, "HOLDER": 20, "AGE": 8, "SIZE": 7, "DATA": 10}),
        (95, {"ID": 32, "STATE": 9, "HOLDER": 20, "SIZE": 7, "DATA": 19}),
        (85, {"ID": 32, "STATE": 9, "HOLDER": 20, "DATA": 18}),
        (76, {"ID": 32, "STATE": 9, "HOLDER": 20}),
        (64, {"ID": 32, "STATE": 9, "HOLDER": 19}),
        (54, {"ID": 21, "STATE": 9, "HOLDER": 20}),
        (40, {"ID": 13, "STATE": 9, "HOLDER": 13}),
        (32, {"ID": 21, "STATE": 9}),
        (20, {"ID": 20}),
        (10, {"ID": 10}),
        (9, {"ID": 9}),
        (1, {"ID": 1}),
        (0, {"ID": 1}),
    ],
)
def test_columns_are_left_out_then_texts_cut_then_ids(room: int, expected: dict[str, int]) -> None:
    assert fitted(room) == expected


def test_a_column_of_short_texts_keeps_its_width() -> None:
    assert fitted(60, (300, 9, 12, 8, 7, 200)) == {"ID": 35, "STATE": 9, "HOLDER": 12}


def test_short_texts_fit_a_very_narrow_terminal() -> None:
    assert fitted(9, (2, 5, 1, 8, 4, 4)) == {"ID": 2, "STATE": 5}


@pytest.mark.parametrize("natural", [NATURAL, (300, 11, 300, 12, 10, 200), (2, 7, 1, 8, 4, 4)])
def test_the_width_is_never_exceeded(natural: Sequence[int]) -> None:
    for room in range(1, 400):
        widths = fitted(room, natural)
        assert sum(widths.values()) + 2 * (len(widths) - 1) <= room
        assert "ID" in widths, room


def test_columns_that_are_empty_are_not_shown() -> None:
    assert list(fit(COLUMNS, NATURAL, [0, 1, 5], 300)) == [0, 1, 5]


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (20, {0: 6, 1: 12}),
        (16, {1: 14}),
        (5, {1: 5}),
    ],
)
def test_of_columns_that_all_stay_the_first_with_names_is_the_last(
    room: int, expected: dict[int, int]
) -> None:
    columns: list[Column[Any]] = [
        Column("AT", str),
        Column("QUEUE", str, cut=Cut.MIDDLE),
        Column("SERVER", str, cut=Cut.MIDDLE),
    ]
    assert fit(columns, (6, 14, 30), range(3), room) == expected


@pytest.mark.parametrize(("room", "expected"), [(20, {1: 9, 0: 8}), (12, {1: 9}), (4, {1: 4})])
def test_of_columns_that_may_all_be_left_out_the_last_stays(
    room: int, expected: dict[int, int]
) -> None:
    assert fit((AGE, STATE), (8, 9), range(2), room) == expected


@pytest.mark.parametrize("room", [0, 1, 5, 9])
def test_a_table_that_is_drawn_again_always_has_its_first_column(room: int) -> None:
    columns: list[Column[str]] = [
        Column("QUEUE", lambda name: name, cut=Cut.MIDDLE),
        Column("WAITING", lambda _: 1, rank=1),
    ]
    titles, lines = table_lines(columns, ["a" * 30], room, [0, 0])
    expected = {0: ("…", "…"), 1: ("…", "…"), 5: ("QUEUE", "aa…aa"), 9: ("QUEUE    ", "aaaa…aaaa")}
    assert tuple("".join(text for text, _ in line) for line in (titles, *lines)) == expected[room]
