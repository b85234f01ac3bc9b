"""What all tests of views have: a time that stands still, in one zone."""

import time
from collections.abc import Iterator

import pytest

from rwq_cli.views import undo_files
from tests.views.facts import NOW_MS


@pytest.fixture(autouse=True)
def _a_fixed_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(undo_files, "time", lambda: NOW_MS / 1000 + 90)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
