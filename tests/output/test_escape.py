"""Escaping: what may go to a terminal as it is, and what may not."""

import unicodedata

import pytest

from rwq_cli.output.escape import escaped, escaped_text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", ""),
        (b"plain text", "plain text"),
        (b"caf\xc3\xa9 \xe6\x97\xa5", "café 日"),
        (b"\xff\xfe", "\\xff\\xfe"),
        (b"caf\xc3", "caf\\xc3"),
        (b"a\nb\rc\td", "a\\nb\\rc\\td"),
        (b"\x00\x07\x1b[2J\x7f", "\\x00\\x07\\x1b[2J\\x7f"),
        ("\x85\x9b".encode(), "\\x85\\x9b"),
        ("\u200b\u202e\u2066\ufeff\u00ad".encode(), "\\u200b\\u202e\\u2066\\ufeff\\xad"),
        ("\u2028\u2029".encode(), "\\u2028\\u2029"),
        ("\ue000".encode(), "\\ue000"),
        ("\U000e0041".encode(), "\\U000e0041"),
        (b"[red]x[/red]", "[red]x[/red]"),
        (b"back\\slash", "back\\slash"),
    ],
)
def test_control_and_format_characters_are_escaped(raw: bytes, text: str) -> None:
    assert escaped(raw) == text


def test_escaped_text_is_safe_whatever_the_bytes() -> None:
    everything = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x11000)])).encode()
    shown = escaped(everything)
    assert {unicodedata.category(character)[0] for character in shown} <= set("LMNPSZ")
    assert escaped_text(shown) == shown
    assert escaped(bytes(range(256))).isprintable()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;x\x07", "\\x1b]0;x\\x07"),
        ("/tmp/\udcff", "/tmp/\\xff"),
        ("\ud800", "\\ud800"),
        ("café", "café"),
    ],
)
def test_text_is_escaped_as_its_bytes_are(text: str, shown: str) -> None:
    assert escaped_text(text) == shown
