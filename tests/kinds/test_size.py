"""Payloads of a megabyte: no call carries many, and no client holds them all."""

import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from rwq_cli.core import Connection, WorkQueue
from rwq_cli.core.batches import BUDGET
from tests.conftest import HOLDER, QUEUE, FakeClock, Foreign, Interleaved
from tests.core.operations import LOOKS
from tests.support import numbered
from tests.verbs import OPERATIONS

MIB = 1024 * 1024
IDS = numbered(24)
DATA = b"x" * MIB
# A call may carry an item more than its budget; some are sent ahead of their replies.
CALL_MAX, HELD_MAX = BUDGET.bytes + MIB + 64 * 1024, 12 * MIB
# The test itself keeps what it exports.
HOLDS = {"export"}


def size_of(words: Any) -> int:
    """The bytes of a request or of a reply."""
    if isinstance(words, bytes | str):
        return len(words)
    if isinstance(words, dict):
        return size_of([*words.items()])
    return sum(map(size_of, words)) if isinstance(words, list | tuple | set) else 8


class Weighed(Interleaved):
    """A connection that notes the largest request and the largest reply."""

    largest = 0

    def call_all(self, commands: Any, **options: Any) -> list[Any]:
        listed = list(commands)
        replies = super().call_all(listed, **options)
        self.largest = max(self.largest, *map(size_of, [*listed, *replies, ""]))
        return replies

    def stream(self, requests: Any, **options: Any) -> Iterator[Any]:
        def weighed() -> Iterator[Any]:
            for request in requests:
                self.largest = max(self.largest, size_of(request or ()))
                yield request

        for reply in super().stream(weighed(), **options):
            self.largest = max(self.largest, size_of(reply))
            yield reply


@pytest.mark.parametrize("name", [*OPERATIONS, *LOOKS])
def test_a_call_carries_few_megabytes(
    connection: Connection, raw: redis.Redis, foreign: Foreign, name: str
) -> None:
    foreign.waiting(*IDS[:16])
    foreign.abandoned(*IDS[16:20])
    for item_id in IDS[20:]:
        foreign.buried(item_id)
    for item_id in IDS:
        raw.set(foreign.keys.item(item_id), DATA)
    weighed = Weighed(connection)
    queue = WorkQueue(weighed, QUEUE, holder=HOLDER, clock=FakeClock())
    operation = {**OPERATIONS, **LOOKS}[name]
    tracemalloc.start()
    try:
        operation.run(queue, IDS, False)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert weighed.largest <= CALL_MAX
    assert peak <= HELD_MAX or name in HOLDS
