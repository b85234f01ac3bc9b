"""The small parts of rendering: escaping, units, JSON, and the widths of columns."""

import json
import unicodedata

import pytest

from rwq_cli.output import human
from rwq_cli.output.encode import bytes_fields, flat, to_json
from rwq_cli.output.escape import escaped, is_safe
from rwq_cli.output.machine import plain
from rwq_cli.output.table import _fit


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
def test_escaped(raw: bytes, text: str) -> None:
    assert escaped(raw) == text


def test_nothing_escaped_is_unsafe_whatever_the_bytes() -> None:
    everything = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x11000)])).encode()
    shown = escaped(everything)
    assert {unicodedata.category(character)[0] for character in shown} <= set("LMNPSZ")
    assert all(is_safe(character) for character in shown)
    assert escaped(bytes(range(256))).isprintable()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0, "0s"),
        (0.04, "0.0s"),
        (0.5, "0.5s"),
        (9.96, "10s"),
        (10, "10s"),
        (59.9, "59s"),
        (60, "1m"),
        (61, "1m1s"),
        (299, "4m59s"),
        (3600, "1h"),
        (3661, "1h1m"),
        (86400, "1d"),
        (90061, "1d1h"),
        (86_460, "1d"),
    ],
)
def test_duration(seconds: float | None, text: str) -> None:
    assert human.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0, "just now"), (0.9, "just now"), (1, "1s ago"), (200, "3m20s ago")],
)
def test_ago(seconds: float | None, text: str) -> None:
    assert human.ago(seconds) == text


@pytest.mark.parametrize(
    ("ahead_s", "text"),
    [
        *((None, "-"), (299.5, "in 4m59s"), (1.25, "in 1.2s"), (0.9, "due now"), (0, "due now")),
        *((-0.9, "due now"), (-3, "due 3s ago"), (-200, "due 3m20s ago")),
    ],
)
def test_due(ahead_s: float | None, text: str) -> None:
    assert human.due(ahead_s) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1_048_575, "1.0 MiB"),
        (1 << 20, "1.0 MiB"),
        (1 << 40, "1.0 TiB"),
        (1 << 52, "4096.0 TiB"),
    ],
)
def test_size(number: int | None, text: str) -> None:
    assert human.size(number) == text


@pytest.mark.parametrize(
    ("number", "text"), [(None, "-"), (0, "0"), (999, "999"), (1234567, "1,234,567")]
)
def test_count(number: int | None, text: str) -> None:
    assert human.count(number) == text


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
def test_bytes_fields(raw: bytes | None, fields: dict[str, str | None]) -> None:
    assert bytes_fields("id", raw) == fields


class TestJson:
    def test_on_one_line_and_read_back(self) -> None:
        value = {"a": [1, None, True, "x\ny\x1b\x7f\x9b\u202e\u2028\ufeff\ue000\U000e0041é日"]}
        text = to_json(value)
        assert json.loads(text) == value
        assert b"\n" not in text
        assert {unicodedata.category(character) for character in text.decode()} <= {
            *("Ll", "Lo", "Lu", "Nd", "Po", "Ps", "Pe", "Zs"),
        }

    def test_what_is_harmless_stays_readable(self) -> None:
        assert to_json({"a": "é日"}) == '{"a": "é日"}'.encode()

    def test_beyond_the_basic_plane(self) -> None:
        assert json.loads(to_json("\U000e0041")) == "\U000e0041"
        assert to_json("\U000e0041").isascii()


def test_flat() -> None:
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


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (True, "true"), (False, "false"), (0, "0"), (1.5, "1.5"), ("a\tb", "a\\tb")],
)
def test_plain(value: object, text: str) -> None:
    assert plain(value) == text


class TestFit:
    def test_nothing_gives_way_where_there_is_room(self) -> None:
        assert _fit([5, 10, 20], [0, 2, 1], 80) == [5, 10, 20]

    def test_the_first_in_rank_gives_way_first(self) -> None:
        assert _fit([5, 20, 60], [0, 2, 1], 60) == [5, 20, 31]
        assert _fit([5, 40, 60], [0, 2, 1], 50) == [5, 31, 10]

    def test_it_is_left_out_at_last(self) -> None:
        assert _fit([40, 40, 60], [0, 2, 1], 55) == [40, 13, 0]

    def test_what_may_not_shrink_does_not(self) -> None:
        assert _fit([100], [0], 80) == [100]
