"""Durations, times, sizes and numbers for people."""

from collections.abc import Callable
from typing import Any

import pytest

from rwq_cli.output import human


@pytest.mark.parametrize(
    ("shown", "values"),
    [
        (
            human.duration,
            {None: "-", 0: "0s", 0.001: "1ms", 0.04: "40ms", 0.5: "0.5s", 9.96: "10s", 59.9: "59s"},
        ),
        (human.duration, {60: "1m", 61: "1m1s", 299: "4m59s", 3661: "1h1m", 86_460: "1d"}),
        (human.ago, {None: "-", 0: "just now", 0.9: "just now", 1: "1s ago", 200: "3m20s ago"}),
        (human.due, {None: "-", 299.5: "in 4m59s", 1.25: "in 1.2s", 0.9: "due now"}),
        (human.due, {-0.9: "due now", -3: "due 3s ago", -200: "due 3m20s ago"}),
        (human.size, {None: "-", 0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1_048_575: "1.0 MiB"}),
        (human.size, {1 << 20: "1.0 MiB", 1 << 40: "1.0 TiB", 1 << 52: "4096.0 TiB"}),
        (human.count, {None: "-", 0: "0", 999: "999", 1234567: "1,234,567"}),
        (human.rate, {None: "?", 0.0: "0", 0.04: "0.0", 3.14: "3.1", 9.96: "10"}),
    ],
)
def test_numbers_for_people(shown: Callable[[Any], str], values: dict[Any, str]) -> None:
    assert {value: shown(value) for value in values} == values


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("UTC", "2026-11-22 08:00:00 UTC"),
        ("Asia/Kolkata", "2026-11-22 13:30:00 +05:30"),
        ("America/New_York", "2026-11-22 03:00:00 -05:00"),
    ],
)
def test_an_instant_has_its_zone(set_zone: Callable[[str], None], name: str, text: str) -> None:
    set_zone(name)
    at_ms = 1_795_334_400_000
    assert human.moment(at_ms) == text
    assert human.when(at_ms, at_ms + 250_000) == f"4m10s ago, {text}"
    assert human.when(at_ms, at_ms - 3_600_000) == f"in 1h, {text}"
    assert human.when(at_ms, at_ms) == f"just now, {text}"
