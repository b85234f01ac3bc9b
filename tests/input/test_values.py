"""Durations, regular expressions, and times of a day, with zones, and in unix seconds."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.input.values import parse_duration, parse_regex, parse_time


def test_units_of_durations_are_added_up() -> None:
    seconds = {
        "0": 0,
        "5": 5,
        "1.5": 1.5,
        "500ms": 0.5,
        " 5m ": 300,
        "1h30m": 5400,
        "2d": 172_800,
        "1d2h3m4s5ms": 93_784.005,
        "1.5h": 5400,
    }
    assert {text: parse_duration(text) for text in seconds} == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "s", "5x", "-5", "+5", "5 5", "1h-1m", "1e3", "inf", "nan", ".5", "5.", "1_000"),
        *("5M", "٣s", "1h 30m", "1:30", "5m,", "0x10"),
    ],
)
def test_what_is_no_duration_is_an_error(text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_duration(text)
    assert caught.value.message == f"not a duration: {text!r}"
    assert caught.value.hint == "write it like 500ms, 30s, 5m, 1h30m or 2d"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a{99999999999}", "the repetition number is too large"),
        ("(" * 5000, "nested too deeply"),
        ("[", "unterminated character set"),
    ],
)
def test_what_is_no_expression_is_an_error(text: str, reason: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^--match is not a regular expression: {reason}"):
        parse_regex(text, "--match")


@pytest.fixture
def in_berlin(set_zone: Callable[[str], None]) -> None:
    """A zone that changes its clocks: at 01:00 UTC on 29 March and on 25 October 2026."""
    set_zone("Europe/Berlin")


def in_utc(unix_ms: int) -> str:
    return datetime.fromtimestamp(unix_ms / 1000, UTC).isoformat(" ", "milliseconds")[5:-6]


@pytest.mark.usefixtures("in_berlin")
class TestTimes:
    @pytest.mark.parametrize(
        ("text", "utc"),
        [
            ("@1795334400", "11-22 08:00:00.000"),
            ("@1795334400.5", "11-22 08:00:00.500"),
            ("@1795334400.001999999", "11-22 08:00:00.001"),
            ("2026-11-22T08:00Z", "11-22 08:00:00.000"),
            ("2026-11-22T08:00", "11-22 07:00:00.000"),
            ("2026-07-01 08:00", "07-01 06:00:00.000"),
            ("2026-11-22T08:00:07.25", "11-22 07:00:07.250"),
            ("2026-11-22T08:00:07+01:00", "11-22 07:00:07.000"),
            ("2026-11-22T08:00-0330", "11-22 11:30:00.000"),
            ("2026-11-22T08:00+14", "11-21 18:00:00.000"),
            (" 2026-11-22T08:00Z ", "11-22 08:00:00.000"),
            # An hour that is left out that night, and one that comes twice: the first of them.
            ("2026-03-29T02:30", "03-29 01:30:00.000"),
            ("2026-10-25T02:30", "10-25 00:30:00.000"),
        ],
    )
    def test_full_times_need_no_clock(self, text: str, utc: str) -> None:
        def now_ms() -> int:
            raise AssertionError("asked")

        assert in_utc(parse_time(text, now_ms)) == utc

    @pytest.mark.parametrize(
        ("now", "text", "utc"),
        [
            ("2026-11-21T18:00Z", "08:00", "11-22 07:00:00.000"),
            ("2026-11-21T18:00Z", "20:00", "11-21 19:00:00.000"),
            ("2026-11-21T18:00Z", "19:00:00.001", "11-21 18:00:00.001"),
            ("2026-11-21T18:00Z", "19:00", "11-22 18:00:00.000"),
            ("2026-11-21T23:30Z", "00:15", "11-22 23:15:00.000"),
            ("2026-11-21T22:30Z", "00:15", "11-21 23:15:00.000"),
            ("2026-12-31T22:59:59Z", "00:00", "12-31 23:00:00.000"),
            # The night before, within and after the hour that comes twice.
            ("2026-10-24T18:00Z", "02:30", "10-25 00:30:00.000"),
            ("2026-10-25T00:45Z", "02:30", "10-25 01:30:00.000"),
            ("2026-10-25T01:45Z", "02:30", "10-26 01:30:00.000"),
            ("2026-10-25T01:45Z", "02:50", "10-25 01:50:00.000"),
            ("2026-10-24T18:00Z", "08:00", "10-25 07:00:00.000"),
            ("2026-03-28T18:00Z", "08:00", "03-29 06:00:00.000"),
            ("2026-03-28T18:00Z", "02:30", "03-29 01:30:00.000"),
            # In a zone of its own, where it may be another day than here.
            ("2026-11-21T18:00Z", "08:00Z", "11-22 08:00:00.000"),
            ("2026-11-21T18:00Z", "18:00:00.001Z", "11-21 18:00:00.001"),
            ("2026-11-21T18:00Z", "18:00Z", "11-22 18:00:00.000"),
            ("2026-11-21T23:30Z", "23:45Z", "11-21 23:45:00.000"),
            ("2026-11-21T18:00Z", "08:00+14", "11-22 18:00:00.000"),
            ("2026-11-21T18:00Z", "08:00+13:30", "11-21 18:30:00.000"),
            ("2026-11-21T18:00Z", "14:31-0330", "11-21 18:01:00.000"),
            # Its clocks are not put back.
            ("2026-10-25T00:45Z", "02:30+02:00", "10-26 00:30:00.000"),
        ],
    )
    def test_a_time_of_day_is_the_next_one(self, now: str, text: str, utc: str) -> None:
        now_ms = parse_time(now, lambda: 0)
        assert in_utc(parse_time(text, lambda: now_ms)) == utc


def test_what_is_no_time_is_an_error() -> None:
    for text in (
        *("", "soon", "8:00", "24:00", "08:60", "08", "@", "@-5", "@1e9", "@x", "5m", "nan"),
        *("2026-11-22", "2026-02-30T08:00", "2026-13-01T08:00", "2026-11-22T08"),
        *("\u0660\u0668:\u0660\u0660", "2026-11-22T08:00+25:00", "2026-11-22T08:00+1"),
        *("2026-11-22T08:00 UTC", "08:00+25:00", "08:00+1", "08:00 UTC", "08Z"),
    ):
        with pytest.raises(InvalidArgument):
            parse_time(text, lambda: 0)
