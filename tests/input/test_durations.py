"""Durations such as 5m and 1h30m."""

import pytest

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.input.values import parse_duration


def test_units_of_durations_are_added_up() -> None:
    for text, seconds in {
        "0": 0,
        "5": 5,
        "1.5": 1.5,
        "500ms": 0.5,
        " 5m ": 300,
        "1h30m": 5400,
        "2d": 172_800,
        "1d2h3m4s5ms": 93_784.005,
        "1.5h": 5400,
    }.items():
        assert parse_duration(text) == pytest.approx(seconds), text


def test_other_text_is_an_error() -> None:
    for text in (
        *("", " ", "s", "5x", "-5", "+5", "5 5", "1h-1m", "1e3", "inf", "nan", ".5", "5.", "1_000"),
        *("5M", "٣s", "1h 30m", "1:30", "5m,", "0x10"),
    ):
        with pytest.raises(InvalidArgument) as caught:
            parse_duration(text)
        assert caught.value.message == f"not a duration: {text!r}"
        assert caught.value.hint == "write it like 500ms, 30s, 5m, 1h30m or 2d"
