"""Prose in sections, and their styles."""

import io
import re

import pytest

from rwq_cli.environment import Environment
from rwq_cli.output.options import OutputFormat, OutputOptions
from rwq_cli.output.records import Output
from rwq_cli.output.sections import COMMAND_STYLE, Section, wrapped


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


@pytest.mark.parametrize("colour", [True, False])
def test_a_section_is_printed_as_it_is_in_its_styles(colour: bool) -> None:
    out = io.BytesIO()
    environment = Environment({"COLUMNS": "30"}, io.BytesIO(), out, io.BytesIO())
    output = Output(OutputOptions(environment, OutputFormat.TABLE, colour))
    command = "rwq show -q jobs a-long-id-that-does-not-fit"
    rows = [("state", "[red]a[/red] :smile: 12", "red"), ("next", command, COMMAND_STYLE)]
    output.sections([Section("jobs", rows)])
    text = "jobs\nstate  [red]a[/red] :smile: 12\n next  " + command + "\n"
    seen = out.getvalue().decode()
    assert re.sub(r"\x1b\[\d*m", "", seen) == text
    assert ("\x1b[31m[red]a" in seen) == colour
