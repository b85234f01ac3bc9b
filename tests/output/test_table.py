"""Which columns of a table are shown, how wide; texts that are cut, and prose in sections."""

import io
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given, strategies as st
from rich.cells import cell_len
from rich.console import Console

from rwq_cli.cli.settings import Settings
from rwq_cli.environment import Environment
from rwq_cli.output.console import cut, wrap_styled
from rwq_cli.output.field import Cut, Field
from rwq_cli.output.painter import Column, Painter, wrap_line
from rwq_cli.output.sections import COMMAND_STYLE, Piece, Section
from rwq_cli.output.tables import draw_lines, fit


def column(name: str, **kinds: Any) -> Field[Any]:
    return Field(name, str, "", **kinds)


ID = column("id", cut=Cut.MIDDLE)
AGE = column("age", rank=1)
SIZE = column("size", rank=2)
DATA = column("data", rank=3, cut=Cut.END)
HOLDER = column("holder", rank=6, cut=Cut.MIDDLE)
STATE = column("state", rank=9)
COLUMNS = (ID, STATE, HOLDER, AGE, SIZE, DATA)
NATURAL = (32, 9, 20, 8, 7, 200)


def fitted(room: int, natural: Sequence[int] = NATURAL) -> dict[str, int]:
    """The widths of the columns that fit, by title."""
    widths = fit(COLUMNS, natural, range(len(COLUMNS)), room)
    return {COLUMNS[index].heading: width for index, width in widths.items()}


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (300, {"ID": 32, "STATE": 9, "HOLDER": 20, "AGE": 8, "SIZE": 7, "DATA": 200}),
        (120, {"ID": 32, "STATE": 9, "HOLDER": 20, "AGE": 8, "SIZE": 7, "DATA": 34}),
        (102, {"ID": 32, "STATE": 9, "HOLDER": 18, "AGE": 8, "SIZE": 7, "DATA": 18}),
        (97, {"ID": 32, "STATE": 9, "HOLDER": 20, "SIZE": 7, "DATA": 21}),
        (85, {"ID": 32, "STATE": 9, "HOLDER": 19, "DATA": 19}),
        # Beside a whole ID, two others would have less than 16.
        (78, {"ID": 32, "STATE": 9, "HOLDER": 20}),
        (64, {"ID": 32, "STATE": 9, "HOLDER": 19}),
        (60, {"ID": 15, "STATE": 9, "HOLDER": 15, "DATA": 15}),
        (45, {"ID": 10, "STATE": 9, "HOLDER": 10, "DATA": 10}),
        (44, {"ID": 16, "STATE": 9, "HOLDER": 15}),
        (32, {"ID": 21, "STATE": 9}),
        (20, {"ID": 20}),
        (10, {"ID": 10}),
        (9, {"ID": 9}),
        (1, {"ID": 1}),
        (0, {"ID": 1}),
    ],
)
def test_ids_stay_whole_or_all_share_the_room(room: int, expected: dict[str, int]) -> None:
    assert fitted(room) == expected


@pytest.mark.parametrize("natural", [NATURAL, (300, 11, 300, 12, 10, 200), (2, 7, 1, 8, 4, 4)])
def test_the_width_is_never_exceeded(natural: Sequence[int]) -> None:
    tables = {room: fitted(room, natural) for room in range(1, 400)}
    assert {room: t for room, t in tables.items() if sum(t.values()) + 2 * len(t) > room + 2} == {}
    assert [room for room, table in tables.items() if "ID" not in table] == []


@pytest.mark.parametrize("room", [0, 1, 5, 9])
def test_a_redrawn_table_has_its_first_column(room: int) -> None:
    columns: list[Field[str]] = [
        Field("queue", lambda name: name, "", cut=Cut.MIDDLE),
        Field("waiting", lambda _: 1, "", rank=1),
    ]
    titles, lines = draw_lines(columns, ["a" * 30], room, [0, 0])
    expected = {0: ("…", "…"), 1: ("…", "…"), 5: ("QUEUE", "aa…aa"), 9: ("QUEUE", "aaaa…aaaa")}
    assert tuple("".join(text for text, _ in line) for line in (titles, *lines)) == expected[room]


TEXTS = st.text(st.sampled_from("ab -日本語é👍🏽🇩🇪\u0301\ufe0f❤"), max_size=80)


@pytest.mark.parametrize(
    ("text", "room", "middle", "expected"),
    [
        ("abcdef", 6, False, "abcdef"),
        ("abcdef", 5, False, "abcd…"),
        ("abcdef", 5, True, "ab…ef"),
        ("cc34" + "0" * 55 + "47b49", 10, True, "cc34…47b49"),
        ("日本語日本語", 7, False, "日本語…"),
        ("日本語日本語", 6, False, "日本…"),
        ("日本語日本語", 7, True, "日…語"),
        ("xe\u0301e\u0301e\u0301e\u0301", 4, False, "xe\u0301e\u0301…"),
        ("abcdef", 1, True, "…"),
    ],
)
def test_a_cut_text_has_an_ellipsis(text: str, room: int, middle: bool, expected: str) -> None:
    assert cut(text, room, (room - 1) // 2 if middle else None) == expected


@pytest.mark.parametrize(
    ("texts", "cut_texts"),
    [
        (
            ["service-02:images:eu", "service-04:images:eu"],
            ["serv…2:images:eu", "serv…4:images:eu"],
        ),
        (
            ["service-02:images:eu", "service-02:images:us"],
            ["service…mages:eu", "service…mages:us"],
        ),
        (
            ["a-service-02:in-front-of-images:eu", "a-service-03:in-front-of-images:eu"],
            ["a-service-02…:eu", "a-service-03…:eu"],
        ),
    ],
)
def test_texts_stay_apart_when_they_are_cut(texts: list[str], cut_texts: list[str]) -> None:
    assert [line[0][0] for line in draw_lines([ID], [*texts, texts[0]], 16, [0])[1]] == [
        *cut_texts,
        cut_texts[0],
    ]


@given(TEXTS, st.integers(1, 40), st.integers(0, 39))
def test_a_cut_text_fits(text: str, room: int, head: int) -> None:
    result = cut(text, room, min(head, room - 1))
    assert cell_len(result) <= room
    assert result == text or "…" in result


@pytest.mark.parametrize(
    ("text", "room", "lines"),
    [
        ("one two three", 8, ["one two", "three"]),
        ("abcdefgh i", 3, ["abc", "def", "gh", "i"]),
        ("  indented line", 10, ["  indented", "line"]),
        ("日本語 日本語", 6, ["日本語", "日本語"]),
        ("日本語", 5, ["日本", "語"]),
    ],
)
def test_words_are_wrapped(text: str, room: int, lines: list[str]) -> None:
    assert wrap_line(text, room, Console()) == lines


def test_styles_take_no_room_in_a_line() -> None:
    text = "on \x1b[1;31mprod\x1b[0m."
    assert wrap_styled(text, 8) == text
    assert wrap_styled(text, 7) == text.replace("on ", "on \n")


def painted(colour: bool, draw: Callable[[Painter], object], columns: int = 30) -> str:
    out = io.BytesIO()
    environment = Environment({"COLUMNS": str(columns)}, io.BytesIO(), out, io.BytesIO())
    settings = Settings(environment, {"color": "always" if colour else "never"})
    draw(Painter(settings))
    return out.getvalue().decode()


@pytest.mark.parametrize("by_rich", [True, False])
@pytest.mark.parametrize("colour", [True, False])
def test_a_section_is_printed_as_it_is_in_its_styles(colour: bool, by_rich: bool) -> None:
    command = "rwq show -q jobs a-long-id-that-does-not-fit"
    lines = [
        ("state", "[red]a[/red] :smile: 12", "red"),
        ("", "Some prose that has to be wrapped, and so it is.", None),
        ("next", command, COMMAND_STYLE),
    ]
    section = Section("jobs", lines)
    seen = painted(colour, lambda painter: painter.section(section, by_rich=by_rich))
    assert re.sub(r"\x1b\[\d*m", "", seen).splitlines() == [
        "jobs",
        "state  [red]a[/red] :smile: 12",
        "       Some prose that has to",
        "       be wrapped, and so it",
        "       is.",
        f" next  {command}",
    ]
    assert ("\x1b[31m[red]a" in seen) == colour


CELLS = st.tuples(TEXTS.map(str.rstrip), st.sampled_from([None, "red", "dim", "bold"]))


@given(st.data(), st.integers(1, 4), st.booleans(), st.booleans())
def test_joined_rows_are_those_of_rich(
    data: st.DataObject, count: int, colour: bool, has_header: bool
) -> None:
    rows: list[list[Piece]] = data.draw(
        st.lists(st.lists(CELLS, min_size=count, max_size=count), max_size=5)
    )
    columns = [
        Column(
            max([4, *(cell_len(row[index][0]) for row in rows)]),
            data.draw(st.booleans()),
            heading,
        )
        for index, heading in enumerate(("ID", "日本", "DATA", "#")[:count])
    ]

    def draw(painter: Painter, by_rich: bool) -> None:
        painter.rows(columns, rows, by_rich=by_rich, has_header=has_header)

    seen = [
        painted(colour, partial(draw, by_rich=by_rich), columns=80) for by_rich in (True, False)
    ]
    # The spaces between columns have a style in rich's tables.
    without = [re.sub(r"\x1b\[2m( *)\x1b\[0m", r"\1", text) for text in seen]
    assert without[0] == without[1]
