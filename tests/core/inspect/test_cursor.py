"""Reading a list in pages while others push and pop: what stays is seen once, and in order."""

import random
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
from redis import Redis

from rwq_cli.core import Connection, WorkQueue
from rwq_cli.core.inspect.cursor import ListCursor, ScheduledCursor
from tests.conftest import QUEUE, Interleaved

LIST = b"list"
DIRECTIONS = pytest.mark.parametrize("from_left", [True, False], ids=["left", "right"])


def numbered(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def walk(connection: Connection, **options: Any) -> list[list[bytes]]:
    """The pages of the list, which do not grow."""
    return list(ListCursor(WorkQueue(connection, QUEUE), LIST, page_max=1, **options))


@DIRECTIONS
@pytest.mark.parametrize("length", [0, 1, 9, 10, 11, 20, 95])
def test_pages_of_a_list_that_does_not_change(
    connection: Connection, raw: Redis, from_left: bool, length: int
) -> None:
    if length:
        raw.rpush(LIST, *numbered(length))
    entries = numbered(length) if from_left else numbered(length)[::-1]
    for start in (0, 1, 10, 94, 95, 200):
        pages = walk(connection, from_left=from_left, page_size=10, start=start)
        wanted = entries[start:]
        assert pages == [wanted[at : at + 10] for at in range(0, len(wanted), 10)], start


def test_pages_grow(connection: Connection, raw: Redis) -> None:
    raw.rpush(LIST, *numbered(2500))
    raw.zadd("jobs:buried", {entry: at for at, entry in enumerate(numbered(100))})
    queue = WorkQueue(connection, QUEUE)
    pages = ListCursor(queue, LIST, from_left=True, page_size=400, page_max=1500)
    assert [len(page) for page in pages] == [400, 800, 1300]
    entries = ScheduledCursor(queue, "buried", page_size=20, page_max=50)
    assert [len(page) for page in entries] == [20, 40, 40]


Change = Callable[[Redis, random.Random, list[bytes]], None]


def grow_left(raw: Redis, dice: random.Random, names: list[bytes]) -> None:
    for _ in range(dice.randint(1, 8)):
        raw.lpush(LIST, names.pop())


def grow_right(raw: Redis, dice: random.Random, names: list[bytes]) -> None:
    for _ in range(dice.randint(1, 8)):
        raw.rpush(LIST, names.pop())


def take_right(raw: Redis, dice: random.Random, _names: list[bytes]) -> None:
    raw.rpop(LIST, dice.randint(1, 8))


def remove_some(raw: Redis, dice: random.Random, _names: list[bytes]) -> None:
    entries = raw.lrange(LIST, 0, -1)
    for entry in dice.sample(entries, min(len(entries), dice.randint(1, 8))):
        raw.lrem(LIST, 0, entry)


def remove_a_run(raw: Redis, dice: random.Random, _names: list[bytes]) -> None:
    """A batch that is completed: neighbours in the list."""
    entries = raw.lrange(LIST, 0, -1)
    at = dice.randrange(len(entries) + 1)
    pipeline = raw.pipeline()
    for entry in entries[at : at + 18]:
        pipeline.lrem(LIST, 0, entry)
    pipeline.execute()


def grow_left_by_pages(raw: Redis, dice: random.Random, names: list[bytes]) -> None:
    raw.lpush(LIST, *(names.pop() for _ in range(dice.choice((50, 100, 300)))))


def assert_what_stays_is_seen_once_and_in_order(
    interleaved: Interleaved,
    raw: Redis,
    *,
    seed: int,
    from_left: bool,
    changes: list[Change],
    length: int,
    page_sizes: tuple[int, int],
) -> None:
    dice = random.Random(seed)
    names = [b"new %d" % number for number in range(100_000)]
    original = numbered(dice.randint(1, length))
    raw.delete(LIST)
    raw.rpush(LIST, *original)
    calls = 0

    def change(_: str) -> None:
        nonlocal calls
        calls += 1
        # Not for ever, or a list that grows ahead of the walk would never end.
        if 1 < calls < 60 and dice.random() < 0.7:
            for _ in range(dice.randint(1, 3)):
                dice.choice(changes)(raw, dice, names)

    interleaved.before = change
    pages = walk(interleaved, from_left=from_left, page_size=dice.randint(*page_sizes))
    assert all(pages), seed
    seen = list(chain(*pages))
    left = set(raw.lrange(LIST, 0, -1))
    stayed = [entry for entry in original if entry in left]
    assert [entry for entry in seen if entry in set(stayed)] == (
        stayed if from_left else stayed[::-1]
    ), seed
    assert len(set(seen)) == len(seen), seed


@DIRECTIONS
def test_entries_that_stay_are_read_once_while_others_push_and_pop(
    interleaved: Interleaved, raw: Redis, from_left: bool
) -> None:
    for seed in range(25):
        assert_what_stays_is_seen_once_and_in_order(
            interleaved,
            raw,
            seed=seed,
            from_left=from_left,
            changes=[grow_left, grow_right, take_right, remove_some],
            length=250,
            page_sizes=(5, 40),
        )


@DIRECTIONS
def test_entries_that_stay_are_read_once_while_others_complete_batches(
    interleaved: Interleaved, raw: Redis, from_left: bool
) -> None:
    for seed in range(8):
        assert_what_stays_is_seen_once_and_in_order(
            interleaved,
            raw,
            seed=seed,
            from_left=from_left,
            changes=[grow_left, grow_left_by_pages, take_right, remove_some, remove_a_run],
            length=1000,
            page_sizes=(60, 100),
        )


def once(action: Callable[[], object], at_call: int) -> Callable[[str], None]:
    """Do something before one call of a connection and never again."""
    calls = 0

    def before(_: str) -> None:
        nonlocal calls
        calls += 1
        if calls == at_call:
            action()

    return before


@DIRECTIONS
@pytest.mark.parametrize("removed", [10, 70])
def test_the_entries_last_read_are_removed(
    interleaved: Interleaved, raw: Redis, from_left: bool, removed: int
) -> None:
    """Workers completed a batch: what they took was in the middle of the list."""
    raw.rpush(LIST, *numbered(200))
    entries = numbered(200) if from_left else numbered(200)[::-1]

    def change() -> None:
        for entry in entries[100 - removed : 100]:
            raw.lrem(LIST, 0, entry)

    interleaved.before = once(change, 11)
    pages = walk(interleaved, from_left=from_left, page_size=10)
    assert list(chain(*pages)) == entries


def test_the_entries_last_read_are_popped(interleaved: Interleaved, raw: Redis) -> None:
    raw.rpush(LIST, *numbered(200))
    interleaved.before = once(lambda: raw.rpop(LIST, 100), 6)
    pages = walk(interleaved, from_left=False, page_size=10)
    # What was read before, and what is left: the 50 in between went unread.
    entries = numbered(200)[::-1]
    assert list(chain(*pages)) == entries[:50] + entries[100:]


@pytest.mark.parametrize("moved", [1, 4])
@DIRECTIONS
def test_the_entries_last_read_move_to_the_other_end(
    interleaved: Interleaved, raw: Redis, from_left: bool, moved: int
) -> None:
    """A waiting item is released to the front; a batch turns the processing list round."""
    raw.rpush(LIST, *numbered(20))
    entries = numbered(20) if from_left else numbered(20)[::-1]
    gone = entries[10 - moved : 10]
    push = raw.rpush if from_left else raw.lpush

    def change() -> None:
        for entry in gone:
            raw.lrem(LIST, 0, entry)
            push(LIST, entry)

    interleaved.before = once(change, 2)
    pages = walk(interleaved, from_left=from_left, page_size=10)
    # They may be met again at their new place; what stayed is met once.
    assert [entry for entry in chain(*pages) if entry not in gone] == [
        entry for entry in entries if entry not in gone
    ]


@DIRECTIONS
def test_reading_ends_if_the_list_is_emptied(
    interleaved: Interleaved, raw: Redis, from_left: bool
) -> None:
    raw.rpush(LIST, *numbered(100))
    interleaved.before = once(lambda: raw.delete(LIST), 4)
    pages = walk(interleaved, from_left=from_left, page_size=10)
    assert [len(page) for page in pages] == [10, 10, 10]


class TestScheduled:
    """The zsets: what stays is seen once, in the order of time, while others leave or move."""

    @staticmethod
    def fill(raw: Redis, count: int) -> list[bytes]:
        raw.zadd(b"jobs:delayed", {b"%03d" % at: 1000 + at / 8 for at in range(count)})
        return [b"%03d" % at for at in range(count)]

    @staticmethod
    def read(queue: WorkQueue, **options: Any) -> list[bytes]:
        pages = ScheduledCursor(queue, "delayed", page_size=10, page_max=10, **options)
        return list(chain(*pages))

    @pytest.mark.parametrize("count", [0, 1, 10, 35])
    def test_pages_of_a_sorted_set_that_does_not_change(
        self, queue: WorkQueue, raw: Redis, count: int
    ) -> None:
        ids = self.fill(raw, count) if count else []
        assert self.read(queue) == ids
        assert self.read(queue, latest_first=True) == ids[::-1]

    @pytest.mark.parametrize("latest_first", [False, True])
    @pytest.mark.parametrize("leave", [3, 10, 17])
    def test_the_entries_last_read_are_removed(
        self,
        interleaved: Interleaved,
        raw: Redis,
        latest_first: bool,
        leave: int,
    ) -> None:
        ids = self.fill(raw, 60)[:: -1 if latest_first else 1]
        turns = iter(range(100))

        def act(_: str) -> None:
            if next(turns) == 2:
                raw.zrem(b"jobs:delayed", *ids[20 - leave : 20])

        interleaved.before = act
        assert self.read(WorkQueue(interleaved, QUEUE), latest_first=latest_first) == ids

    def test_the_entry_last_read_gets_a_later_score(
        self, interleaved: Interleaved, raw: Redis
    ) -> None:
        ids = self.fill(raw, 40)
        turns = iter(range(100))

        def act(_: str) -> None:
            if next(turns) == 1:
                raw.zadd(b"jobs:delayed", {ids[9]: 99_999})

        interleaved.before = act
        assert self.read(WorkQueue(interleaved, QUEUE)) == [*ids, ids[9]]

    def test_entries_of_one_score_are_read_once(self, interleaved: Interleaved, raw: Redis) -> None:
        ids = [b"%03d" % at for at in range(35)]
        raw.zadd(b"jobs:delayed", dict.fromkeys(ids, 5))
        turns = iter(range(100))

        def act(_: str) -> None:
            if next(turns) == 1:
                raw.zrem(b"jobs:delayed", *ids[:3], *ids[5:8])

        interleaved.before = act
        assert self.read(WorkQueue(interleaved, QUEUE)) == ids
