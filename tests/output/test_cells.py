"""The width of texts on a terminal, and texts that are cut."""

import pytest
from hypothesis import given, strategies as st

from rwq_cli.output.console import cut, width

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
    assert cut(text, room, middle=middle) == expected


@given(TEXTS, st.integers(1, 40), st.booleans())
def test_a_cut_text_fits(text: str, room: int, middle: bool) -> None:
    result = cut(text, room, middle=middle)
    assert width(result) <= room
    assert result == text or "…" in result
