"""Locks are kept by work, not by sleep: each reply takes long, and none is lost between them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from rwq_cli.core import Connection, WorkQueue
from rwq_cli.core.items.lock import LOCK_MS
from tests.conftest import HOLDER, QUEUE, FakeClock, Foreign, Interleaved
from tests.support import numbered

# Some replies come between two renewals.
REPLY_S = LOCK_MS / 1000 / 30
COUNT = 15_000
IDS = numbered(COUNT)
HOLDING: dict[str, tuple[str, Callable[[Foreign], object], Callable[[WorkQueue], object]]] = {
    "light clean": (
        "clean-lock",
        lambda foreign: foreign.abandoned(*IDS),
        lambda queue: list(queue.light_clean(grace_s=0)),
    ),
    "deep clean": (
        "clean-lock",
        lambda foreign: foreign.data(*IDS),
        lambda queue: list(queue.deep_clean(grace_s=0)),
    ),
    "doctor": (
        "clean-lock",
        lambda foreign: foreign.abandoned(*IDS),
        lambda queue: queue.diagnose(fix=True, grace_s=0),
    ),
}


class Slow(Interleaved):
    """A connection whose replies take long."""

    def __init__(self, inner: Connection, take_long: Callable[[], object]) -> None:
        super().__init__(inner)
        self._take_long = take_long

    def call_all(self, commands: Any, **options: Any) -> list[Any]:
        replies = super().call_all(commands, **options)
        self._take_long()
        return replies

    def stream(self, requests: Any, **options: Any) -> Iterator[Any]:
        for reply in super().stream(requests, **options):
            self._take_long()
            yield reply


@pytest.mark.parametrize("name", HOLDING)
def test_a_lock_is_kept_while_replies_take_long(
    connection: Connection, raw: redis.Redis, foreign: Foreign, name: str
) -> None:
    key, arrange, act = HOLDING[name]
    lock = QUEUE + b":" + key.encode()
    arrange(foreign)
    clock, was_held, lapses = FakeClock(), False, 0

    def take_long() -> None:
        """Time passes on this machine and on the server."""
        nonlocal was_held, lapses
        clock.now_s += REPLY_S
        left_ms = raw.pttl(lock) - round(REPLY_S * 1000)
        if left_ms > 0:
            was_held = True
            raw.pexpire(lock, left_ms)
        elif raw.delete(lock):
            lapses += 1

    slow = Slow(connection, take_long)
    act(WorkQueue(slow, QUEUE, holder=HOLDER, clock=clock))
    assert was_held
    assert len(slow.calls) * REPLY_S > 2 * LOCK_MS / 1000, "it took too few calls"
    assert lapses == 0
    assert raw.exists(lock) == 0
