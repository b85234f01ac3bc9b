"""Declared fields, their values in JSON, CSV and plain lines, and what is escaped on a terminal."""

import json
import unicodedata

import pytest

from rwq_cli.output.escape import JsonText, escaped, escaped_text
from rwq_cli.output.field import bytes_fields, format_plain, to_json


@pytest.mark.parametrize(
    ("raw", "fields"),
    [
        (b"text", {"id": "text", "id_b64": None}),
        (b"", {"id": "", "id_b64": None}),
        (b"\xff", {"id": None, "id_b64": "/w=="}),
        (b"\x00", {"id": "\x00", "id_b64": None}),
        (None, {"id": None, "id_b64": None}),
        # The bytes of half a surrogate pair are no UTF-8.
        (b"\xed\xa0\x80", {"id": None, "id_b64": "7aCA"}),
    ],
)
def test_bytes_that_are_not_utf8_are_base64(
    raw: bytes | None, fields: dict[str, str | None]
) -> None:
    assert bytes_fields("id", raw) == fields


def test_json_is_one_safe_line() -> None:
    value = {"a": [1, None, True, "x\ny\x1b\x7f\x9b\u202e\u2028\ufeff\ue000\U000e0041é日"]}
    text = to_json(value)
    assert json.loads(text) == value
    assert b"\n" not in text
    assert {unicodedata.category(character) for character in text.decode()} <= {
        *("Ll", "Lo", "Lu", "Nd", "Po", "Ps", "Pe", "Zs"),
    }


def test_a_field_is_written_as_it_stands() -> None:
    record = {
        "data": '"data_json": null, "more": null',
        "data_json": JsonText('{"n": 1.10, "t": "\u202e"}'),
        "more": None,
    }
    assert to_json(record) == (
        rb'{"data": "\"data_json\": null, \"more\": null", '
        rb'"data_json": {"n": 1.10, "t": "\u202e"}, "more": null}'
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (True, "true"), (False, "false"), (0, "0"), (1.5, "1.5"), ("a\tb", "a\\tb")],
)
def test_values_in_plain_lines(value: object, text: str) -> None:
    assert format_plain(value) == text


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
