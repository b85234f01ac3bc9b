"""Durations, times, sizes and numbers for people."""

import time
from collections.abc import Callable, Iterator

import pytest

from rwq_cli.output import human


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
def test_durations_have_two_units(seconds: float | None, text: str) -> None:
    assert human.duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (0, "just now"), (0.9, "just now"), (1, "1s ago"), (200, "3m20s ago")],
)
def test_past_times_are_relative(seconds: float | None, text: str) -> None:
    assert human.ago(seconds) == text


@pytest.mark.parametrize(
    ("ahead_s", "text"),
    [
        *((None, "-"), (299.5, "in 4m59s"), (1.25, "in 1.2s"), (0.9, "due now"), (0, "due now")),
        *((-0.9, "due now"), (-3, "due 3s ago"), (-200, "due 3m20s ago")),
    ],
)
def test_due_times_are_relative(ahead_s: float | None, text: str) -> None:
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
def test_sizes_have_binary_units(number: int | None, text: str) -> None:
    assert human.size(number) == text


@pytest.mark.parametrize(
    ("number", "text"), [(None, "-"), (0, "0"), (999, "999"), (1234567, "1,234,567")]
)
def test_counts_have_thousands_separators(number: int | None, text: str) -> None:
    assert human.count(number) == text


@pytest.fixture
def set_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Set the time zone of this process."""

    def set_to(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield set_to
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("UTC", "2026-11-22 08:00:00 UTC"),
        ("Europe/Berlin", "2026-11-22 09:00:00 +01:00"),
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


@pytest.mark.parametrize(
    ("per_s", "is_least", "text"),
    [
        *[(None, False, "-"), (0.0, False, "0"), (0.0, True, "-")],
        *[(0.04, False, "0.0"), (3.14, False, "3.1"), (3.14, True, "≥3.1")],
        *[(9.96, False, "10"), (12345.6, True, "≥12,346")],
    ],
)
def test_rates(per_s: float | None, is_least: bool, text: str) -> None:
    assert human.rate(per_s, is_least=is_least) == text
