"""Escaping: what may go to a terminal as it is, and what may not."""

import unicodedata

import pytest

from rwq_cli.output.escape import escaped, escaped_text


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
