"""Prose in sections, and the styles of lines."""

import io

import pytest
from hypothesis import given, strategies as st

from rwq_cli.environment import Environment
from rwq_cli.output.cells import width
from rwq_cli.output.options import OutputFormat, OutputOptions
from rwq_cli.output.screen import Piece, print_lines
from rwq_cli.output.table import wrapped
from tests.output.test_cells import TEXTS


@pytest.mark.parametrize(
    ("text", "room", "lines"),
    [
        ("", 5, [""]),
        ("one two three", 8, ["one two", "three"]),
        ("abcdefgh i", 3, ["abc", "def", "gh", "i"]),
        ("  indented line", 10, ["  indented", "line"]),
        ("日本語 日本語", 6, ["日本語", "日本語"]),
        ("日本語", 5, ["日本", "語"]),
    ],
)
def test_words_are_wrapped(text: str, room: int, lines: list[str]) -> None:
    assert wrapped(text, room) == lines


@given(TEXTS, st.integers(2, 40))
def test_wrapped_lines_fit_and_lose_nothing_but_spaces(text: str, room: int) -> None:
    lines = wrapped(text, room)
    assert all(width(line) <= room for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    ("line", "coloured", "plain"),
    [
        ([("a", "red"), ("  ", None), ("b", None)], "\x1b[31ma\x1b[0m  b", "a  b"),
        ([("a", "bold"), ("   ", None)], "\x1b[1ma\x1b[0m", "a"),
        ([("a  ", "red"), ("", None), (" ", None)], "\x1b[31ma\x1b[0m", "a"),
        ([("[red]a[/red] :smile: 12", None)], "[red]a[/red] :smile: 12", "[red]a[/red] :smile: 12"),
        ([], "", ""),
    ],
)
@pytest.mark.parametrize("colour", [True, False])
def test_a_line_is_printed_as_it_is_in_its_styles(
    line: list[Piece], coloured: str, plain: str, colour: bool
) -> None:
    out = io.BytesIO()
    environment = Environment({}, io.BytesIO(), out, io.BytesIO())
    options = OutputOptions(environment, OutputFormat.TABLE, colour)
    print_lines([line, [("x", None)]], options)
    assert out.getvalue().decode() == f"{coloured if colour else plain}\nx\n"
