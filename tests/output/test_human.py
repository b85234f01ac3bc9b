"""Instants for people; other numbers: tests/views/test_sentences.py."""

from collections.abc import Callable

import pytest

from rwq_cli.output import human


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
