"""The width of texts on a terminal, and texts that are cut, wrapped and coloured."""

import pytest
from hypothesis import given, strategies as st

from rwq_cli.output.cells import cut, painted, width, wrapped

TEXTS = st.text(st.sampled_from("ab -日本語é👍🏽🇩🇪\u0301\ufe0f❤"), max_size=80)


@pytest.mark.parametrize(
    ("text", "cells"),
    [("", 0), ("abc", 3), ("日本", 4), ("é", 1), ("e\u0301", 1), ("👍🏽", 2), ("❤\ufe0f", 2)],
)
def test_wide_characters_count_as_two_and_accents_as_none(text: str, cells: int) -> None:
    assert width(text) == cells


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
    assert cut(text, room, middle=middle) == expected


@given(TEXTS, st.integers(1, 40), st.booleans())
def test_a_cut_text_fits(text: str, room: int, middle: bool) -> None:
    result = cut(text, room, middle=middle)
    assert width(result) <= room
    assert result == text or "…" in result


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


def test_only_text_with_a_style_is_painted() -> None:
    assert painted("a", "red", colour=True) == "\x1b[31ma\x1b[0m"
    assert painted("a", "red", colour=False) == "a"
    assert painted("a", None, colour=True) == "a"
    assert painted("", "red", colour=True) == ""
