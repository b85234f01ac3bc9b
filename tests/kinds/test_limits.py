"""Limits that do not add up: however many addresses are silent, a command waits about as long."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from threading import Event

import pytest

from tests.driver import Rwq
from tests.proxies import served
from tests.servers import HOST

SILENT = 6
LIMIT_S = 0.2


@pytest.fixture
def silent() -> Iterator[list[str]]:
    """Addresses that accept connections and say nothing."""
    over = Event()
    with ExitStack() as stack:
        listeners = [
            stack.enter_context(served(lambda _client: over.wait())) for _ in range(SILENT)
        ]
        yield [f"{HOST}:{listener.getsockname()[1]}" for listener in listeners]
        over.set()


@pytest.mark.parametrize("url", ["redis+sentinel://{}/name", "redis+cluster://{}"])
def test_many_silent_addresses_take_little_longer(rwq: Rwq, silent: list[str], url: str) -> None:
    def seconds(count: int) -> float:
        began_s = time.monotonic()
        words = ("--connect-timeout", f"{LIMIT_S}s", "--reply-timeout", f"{LIMIT_S}s")
        result = rwq("ls", "-u", url.format(",".join(silent[:count])), *words, "--patience", "0")
        assert result.code == 69, result.notes
        return time.monotonic() - began_s

    seconds(1)
    one, many = (min(seconds(count) for _ in range(2)) for count in (1, SILENT))
    assert many < one * SILENT / 2
