"""Values for JSON and CSV."""

import json
import unicodedata

import pytest

from rwq_cli.output.encode import JsonText, bytes_fields, flat, to_json
from rwq_cli.output.json_text import json_text


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


class TestJson:
    def test_json_is_one_safe_line(self) -> None:
        value = {"a": [1, None, True, "x\ny\x1b\x7f\x9b\u202e\u2028\ufeff\ue000\U000e0041é日"]}
        text = to_json(value)
        assert json.loads(text) == value
        assert b"\n" not in text
        assert {unicodedata.category(character) for character in text.decode()} <= {
            *("Ll", "Lo", "Lu", "Nd", "Po", "Ps", "Pe", "Zs"),
        }

    def test_safe_characters_are_not_escaped(self) -> None:
        assert to_json({"a": "é日"}) == '{"a": "é日"}'.encode()

    def test_characters_beyond_the_basic_plane_are_pairs(self) -> None:
        assert json.loads(to_json("\U000e0041")) == "\U000e0041"
        assert to_json("\U000e0041").isascii()


class TestJsonText:
    def test_a_field_is_written_as_it_stands(self) -> None:
        record = {
            "data": '"data_json": null, "more": null',
            "data_json": JsonText('{"n": 1.10, "t": "\u202e"}'),
            "more": JsonText("null"),
        }
        assert to_json(record) == (
            rb'{"data": "\"data_json\": null, \"more\": null", '
            rb'"data_json": {"n": 1.10, "t": "\u202e"}, "more": null}'
        )

    @pytest.mark.parametrize(
        ("data", "text"),
        [
            (b' {"a":[1,2.50,\n1E400]}\n', '{"a": [1, 2.50, 1E400]}'),
            ('{"a":"é"}'.encode(), '{"a": "é"}'),
            (b'"x"', '"x"'),
            (b"18446744073709551617", "18446744073709551617"),
            (b"null", "null"),
            (b"text", None),
            (b"", None),
            (b"[NaN]", None),
            (b"[-Infinity]", None),
            (rb'"\ud800"', None),
            (b'"\xff"', None),
            (b"[1,]", None),
            (b"[" * 100_000 + b"]" * 100_000, None),
        ],
    )
    def test_only_json_has_a_text(self, data: bytes, text: str | None) -> None:
        assert json_text(data) == text


def test_nested_fields_become_columns() -> None:
    nested = {"lease": ("holder", "ttl_ms")}
    record = {"a": 1, "lease": None, "facts": {"x": [1, 2]}, "b": {"c": {"d": 1}}}
    assert flat(record, nested) == {
        "a": 1,
        "lease_holder": None,
        "lease_ttl_ms": None,
        "facts_x": "1 2",
        "b_c_d": 1,
    }
    assert flat({"lease": {"holder": "h", "ttl_ms": None}}, nested) == {
        "lease_holder": "h",
        "lease_ttl_ms": None,
    }
