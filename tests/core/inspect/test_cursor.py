"""Reading a list in pages while others push and pop: what stays is seen once, and in order."""

import random
from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any
from unittest.mock import patch

import pytest
from redis import Redis

from rwq_cli.core import Connection, WorkQueue
from rwq_cli.core.inspect.cursor import ListCursor, ScheduledCursor
from tests.conftest import QUEUE, Interleaved
from tests.support import numbered

LIST = b"list"
DIRECTIONS = pytest.mark.parametrize("from_left", [True, False], ids=["left", "right"])


def walk(connection: Connection, *, page_size: int, **options: Any) -> list[list[bytes]]:
    """The pages of the list, which do not grow."""
    with patch("rwq_cli.core.inspect.cursor._PAGES_MAX", (page_size, page_size)):
        queue = WorkQueue(connection, QUEUE)
        return list(ListCursor(queue, LIST, page_size=page_size, **options))


def fill(raw: Redis, count: int, *, from_left: bool) -> list[bytes]:
    """The entries in the order of the walk."""
    raw.delete(LIST)
    if count:
        raw.rpush(LIST, *numbered(count))
    return numbered(count)[:: 1 if from_left else -1]


@DIRECTIONS
@pytest.mark.parametrize("length", [0, 1, 9, 10, 11, 95])
def test_pages_of_a_list_that_does_not_change(
    connection: Connection, raw: Redis, from_left: bool, length: int
) -> None:
    entries = fill(raw, length, from_left=from_left)
    pages = {
        start: [entries[at : at + 10] for at in range(start, length, 10)]
        for start in (0, 1, 10, 94, 95, 200)
    }
    walked = partial(walk, connection, from_left=from_left, page_size=10)
    assert {start: walked(start=start) for start in pages} == pages


def _push(raw: Redis, dice: random.Random, new: list[bytes]) -> None:
    for _ in range(dice.randint(1, 8)):
        (raw.lpush if dice.random() < 0.5 else raw.rpush)(LIST, new.pop())


def _push_pages(raw: Redis, dice: random.Random, new: list[bytes]) -> None:
    raw.lpush(LIST, *(new.pop() for _ in range(dice.choice((50, 100, 300)))))


def _pop(raw: Redis, dice: random.Random, _new: list[bytes]) -> None:
    raw.rpop(LIST, dice.randint(1, 8))


def _remove(raw: Redis, dice: random.Random, _new: list[bytes]) -> None:
    """Some here and there, or a batch that is completed: neighbours in the list."""
    entries = raw.lrange(LIST, 0, -1)
    at = dice.randrange(len(entries) + 1)
    some = dice.sample(entries, min(len(entries), dice.randint(1, 8)))
    for entry in some if dice.random() < 0.5 else entries[at : at + 18]:
        raw.lrem(LIST, 0, entry)


@DIRECTIONS
@pytest.mark.parametrize(
    ("seed", "length", "page_sizes", "changes"),
    [
        *((seed, 250, (5, 40), [_push, _pop, _remove]) for seed in range(25)),
        *((seed, 1000, (60, 100), [_push, _push_pages, _pop, _remove]) for seed in range(8)),
    ],
    ids=[*(f"small {seed}" for seed in range(25)), *(f"large {seed}" for seed in range(8))],
)
def test_entries_that_stay_are_read_once_in_order(
    interleaved: Interleaved,
    raw: Redis,
    from_left: bool,
    seed: int,
    length: int,
    page_sizes: tuple[int, int],
    changes: list[Callable[..., None]],
) -> None:
    dice, new = random.Random(seed), numbered(100_000, b"new %d")
    original = fill(raw, dice.randint(1, length), from_left=from_left)

    def change(_: str) -> None:
        # Not for ever, or a list that grows ahead of the walk would never end.
        if 1 < len(interleaved.calls) < 60 and dice.random() < 0.7:
            for _ in range(dice.randint(1, 3)):
                dice.choice(changes)(raw, dice, new)

    interleaved.before = change
    pages = walk(interleaved, from_left=from_left, page_size=dice.randint(*page_sizes))
    assert all(pages)
    seen = list(chain(*pages))
    stayed = set(original) & set(raw.lrange(LIST, 0, -1))
    assert [i for i in seen if i in stayed] == [i for i in original if i in stayed]
    assert len(set(seen)) == len(seen)


def once(action: Callable[[], object], at_call: int) -> Callable[[str], None]:
    """Do something before one call of a connection and never again."""
    calls = iter(range(1, 1000))
    return lambda _: action() if next(calls) == at_call else None


@patch("rwq_cli.core.inspect.cursor._PAGES_MAX", (10, 10))
class TestScheduled:
    """The zsets: what stays is seen once, in the order of time, while others leave or move."""

    @staticmethod
    def read(
        connection: Interleaved, raw: Redis, ids: list[bytes], at_call: int, change: Any, **to: Any
    ) -> list[bytes]:
        raw.delete(b"jobs:delayed")
        raw.zadd(b"jobs:delayed", {item_id: 1000 + at / 8 for at, item_id in enumerate(ids)})
        connection.before = once(change, at_call)
        queue = WorkQueue(connection, QUEUE)
        return list(chain(*ScheduledCursor(queue, "delayed", page_size=10, **to)))

    @pytest.mark.parametrize("latest_first", [False, True])
    @pytest.mark.parametrize("leave", [0, 3, 10, 17])
    def test_entries_last_read_are_removed(
        self, interleaved: Interleaved, raw: Redis, latest_first: bool, leave: int
    ) -> None:
        ids = numbered(60)
        order = ids[:: -1 if latest_first else 1]
        change = partial(raw.zrem, b"jobs:delayed", *(order[20 - leave : 20] or [b"none"]))
        assert self.read(interleaved, raw, ids, 3, change, latest_first=latest_first) == order

    def test_entries_of_one_score_are_read_once(self, interleaved: Interleaved, raw: Redis) -> None:
        ids = numbered(35)
        raw.zadd(b"jobs:buried", dict.fromkeys(ids, 5))
        interleaved.before = once(lambda: raw.zrem(b"jobs:buried", *ids[:3], *ids[5:8]), 2)
        queue = WorkQueue(interleaved, QUEUE)
        assert list(chain(*ScheduledCursor(queue, "buried", page_size=10))) == ids

    @pytest.mark.parametrize("latest_first", [False, True])
    @pytest.mark.parametrize("removes", ["nothing", "the last few", "all", "others"])
    def test_many_of_one_score_are_not_read_every_page(
        self, connection: Connection, raw: Redis, latest_first: bool, removes: str
    ) -> None:
        ids = [*numbered(900), b"later"]
        raw.zadd(b"jobs:buried", {item_id: 5 + (item_id == b"later") for item_id in ids})
        queue = WorkQueue(connection, QUEUE)
        replied, read = [], list[bytes]()
        with patch("rwq_cli.core.inspect.cursor._PAGES_MAX", (20, 20)):
            cursor = ScheduledCursor(queue, "buried", page_size=20, latest_first=latest_first)
            reply_to = cursor._reply_to
            cursor._reply_to = lambda *command: replied.append(reply_to(*command)) or replied[-1]  # type: ignore[method-assign]
            for page in cursor:
                read += page
                last = {"nothing": [], "the last few": page[-5:], "all": page, "others": page[::2]}
                if gone := last[removes]:
                    raw.zrem(b"jobs:buried", *gone)
        assert read == ids[:: -1 if latest_first else 1]
        assert sum(map(len, replied)) <= 3 * 2 * len(ids)
