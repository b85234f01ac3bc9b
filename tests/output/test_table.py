"""Which columns of a table are shown, and how wide."""

from collections.abc import Sequence
from typing import Any

import pytest

from rwq_cli.output.fit import fit
from rwq_cli.output.report import Column, Cut

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
    ],
)
def test_columns_are_left_out_then_texts_cut_then_ids(room: int, expected: dict[str, int]) -> None:
    assert fitted(room) == expected


def test_a_column_of_short_texts_keeps_its_width() -> None:
    assert fitted(60, (300, 9, 12, 8, 7, 200)) == {"ID": 35, "STATE": 9, "HOLDER": 12}


@pytest.mark.parametrize("room", range(40, 400, 7))
@pytest.mark.parametrize("natural", [NATURAL, (300, 11, 300, 12, 10, 200), (2, 7, 1, 8, 4, 4)])
def test_the_width_is_never_exceeded(room: int, natural: Sequence[int]) -> None:
    widths = fitted(room, natural)
    assert sum(widths.values()) + 2 * (len(widths) - 1) <= room
    assert "ID" in widths


def test_columns_that_are_empty_are_not_shown() -> None:
    assert list(fit(COLUMNS, NATURAL, [0, 1, 5], 300)) == [0, 1, 5]
