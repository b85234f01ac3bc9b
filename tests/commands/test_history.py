"""`rwq history`: what cleaners write down, once a minute whoever writes, and how it is shown."""

import time
from collections.abc import Mapping

import pytest
import redis

from rwq_cli.commands.history import _fitting_step_ms
from rwq_cli.core import WorkQueue
from rwq_cli.core.inspect.history import (
    HOUR_MS,
    MINUTE_MS,
    HistoryWriter,
    last_waiting,
    read_history,
    stalled_s,
)
from rwq_cli.core.repair.clean import clean
from tests.conftest import AsUser, FakeClock, Foreign, StartServer
from tests.driver import Rwq

NOW_MS = int(time.time() * 1000) // HOUR_MS * HOUR_MS


def write(raw: redis.Redis, at_ms: int, key: str = "jobs:history", **fields: object) -> None:
    usual = dict.fromkeys(("processing", "abandoned", "delayed", "buried"), 0)
    raw.xadd(
        key, {"waiting": 1, **usual, "done": 60, "age": 5, "next": "a", **fields}, f"{at_ms}-0"
    )  # type: ignore[dict-item]


def clean_once(queue: WorkQueue, writer: HistoryWriter) -> None:
    list(clean(queue, deep=False, grace_s=0, history=writer))


def entries(raw: redis.Redis, key: str = "jobs:history") -> list[Mapping[bytes, bytes]]:
    return [fields for _, fields in raw.xrange(key)]


def test_an_entry_a_minute_whoever_writes(
    queue: WorkQueue, clock: FakeClock, foreign: Foreign, raw: redis.Redis
) -> None:
    done = {b"jobs": 100}
    writers = [HistoryWriter(lambda: done) for _ in range(2)]
    for writer in writers:
        clean_once(queue, writer)
    # A queue that never had an item has no history.
    assert entries(raw) == []
    foreign.waiting(b"next", b"w2")
    foreign.leased(b"l")
    foreign.buried(b"b")
    started_ms = queue.now_ms()
    for writer in [*writers, *writers]:
        done[b"jobs"] += 50
        clock.now_s += 61
        clean_once(queue, writer)
    # Perhaps two, if a minute has begun meanwhile.
    assert len(entries(raw)) <= 1 + queue.now_ms() // MINUTE_MS - started_ms // MINUTE_MS
    entry = entries(raw)[0]
    assert entry.pop(b"age") in (b"0", b"1", b"")
    assert {name.decode(): value.decode() for name, value in entry.items()} == {
        "waiting": "2",
        "processing": "1",
        "abandoned": "0",
        "delayed": "0",
        "buried": "1",
        "done": f"{60 * 50 / 61:.6g}",
        "next": "next",
    }
    assert raw.xrange("jobs:history:hours") == raw.xrange("jobs:history")[:1]
    (read,) = list(read_history(queue, started_ms // MINUTE_MS * MINUTE_MS))[:1]
    assert (read.waiting, read.next_id) == (2, b"next")


def test_what_one_cleaner_finds_is_in_its_next_entry(
    queue: WorkQueue, clock: FakeClock, foreign: Foreign, raw: redis.Redis
) -> None:
    """Another one may have written that of the minute."""
    first, second = HistoryWriter(dict), HistoryWriter(dict)
    for number, writer in enumerate([first, second, first]):
        foreign.abandoned(b"%d" % number)
        clean_once(queue, writer)
    assert [entry[b"abandoned"] for entry in entries(raw)] == [b"1"]
    clock.now_s += 61
    for writer in (second, first):
        raw.delete("jobs:history")
        clean_once(queue, writer)
        assert [entry[b"abandoned"] for entry in entries(raw)] == [b"1"]


def test_a_user_who_may_not_write_it_is_told_once(
    as_user: AsUser, clock: FakeClock, foreign: Foreign, raw: redis.Redis
) -> None:
    queue = WorkQueue(as_user("+@all", "-xadd"), b"jobs", clock=clock)
    notes: list[str] = []
    queue.connection.on_wait = notes.append
    foreign.waiting(b"a")
    writer = HistoryWriter(dict)
    for _ in range(2):
        foreign.abandoned(b"b")
        clean_once(queue, writer)
        clock.now_s += 61
    assert raw.lrange("jobs:queue", 0, -1) == [b"b", b"a"]
    assert not raw.exists("jobs:clean-lock")
    (note,) = notes
    assert note.startswith("rwq: no history is written: ")


def test_minutes_and_before_them_hours(queue: WorkQueue, raw: redis.Redis) -> None:
    for hour in range(5):
        write(raw, NOW_MS - (5 - hour) * HOUR_MS, "jobs:history:hours", waiting=hour)
    for minute in range(90, 0, -1):
        write(raw, NOW_MS - minute * MINUTE_MS, waiting=100 + minute)
    read = [entry.waiting for entry in read_history(queue, NOW_MS - 4 * HOUR_MS)]
    assert read == [1, 2, 3, *range(190, 100, -1)]
    assert last_waiting([queue, queue.sibling(b"none")], 3) == {
        b"jobs": [103, 102, 101],
        b"none": [],
    }


@pytest.mark.parametrize(
    ("last", "seconds"),
    [
        # The same for twelve minutes, and nothing was done.
        ([("a", 0)] * 13, 12 * 60),
        ([("b", 0)] * 8 + [("a", 0)] * 4, 3 * 60),
        # Something was done before the third from the end.
        ([("a", 0)] * 9 + [("a", 5)] + [("a", 0)] * 2, 2 * 60),
        ([("b", 0)] * 3, 0),
        ([], None),
    ],
)
def test_how_long_nothing_moves(
    queue: WorkQueue,
    foreign: Foreign,
    raw: redis.Redis,
    last: list[tuple[str, int]],
    seconds: int | None,
) -> None:
    foreign.waiting(b"a")
    now_ms = queue.now_ms() // MINUTE_MS * MINUTE_MS
    for minutes, (next_id, done) in zip(range(len(last), 0, -1), last, strict=True):
        write(raw, now_ms - minutes * MINUTE_MS, next=next_id, done=done)
    found = stalled_s(queue)
    assert found == seconds


def test_blocks_records_and_who_would_write_them(rwq: Rwq, raw: redis.Redis) -> None:
    result = rwq("history", "-o", "table")
    assert (result.code, result.text) == (0, "")
    assert "jobs: no history; it is written by rwq clean light --every 30s" in result.notes
    now_ms = int(time.time() * 1000) // MINUTE_MS * MINUTE_MS
    # A day of the test's own.
    for minute in range(1440, 0, -1):
        write(raw, now_ms - minute * MINUTE_MS, waiting=minute % 700, done=minute % 7)
    widths = (80, 200)
    variables = [{"COLUMNS": str(width)} for width in widths]
    texts = [rwq("history", "-o", "table", variables=names).text for names in variables]
    heads = [f"jobs: the last 1d, a block for {step}" for step in ("1h", "10m")]
    assert [text.splitlines()[0] for text in texts] == heads
    longest = [max(map(len, text.splitlines())) for text in texts]
    assert [size <= width for size, width in zip(longest, widths, strict=True)] == [True, True]
    assert ["to 699, now " in text for text in texts] == [True, True], texts
    hour_ago_ms = time.time() * 1000 - 60 * MINUTE_MS
    records = rwq("history", "--since", "1h", "-o", "jsonl").jsonl
    first_ms = records[0]["at_ms"]
    assert hour_ago_ms <= first_ms <= time.time() * 1000 - 59 * MINUTE_MS
    assert len(records) == (now_ms - first_ms) // MINUTE_MS
    assert (records[-1]["waiting"], records[-1]["next_id"]) == (1, "a")
    steps = rwq("history", "--since", "1h", "--step", "30m", "-o", "csv").text.splitlines()
    assert steps[0] == (
        "at_ms,waiting,processing,abandoned,delayed,buried,done_per_minute,next_age_seconds,next_id"
    )
    assert len(steps) in (3, 4)


@pytest.mark.parametrize(
    ("words", "title", "waiting"),
    [
        ((), "jobs: the last 4m, a block for 1m", "1 to 4, now 1"),
        (("--step", "30d"), "jobs: the last 30d, a block for 30d", "always 4"),
    ],
)
def test_a_short_history_has_short_blocks(
    rwq: Rwq, raw: redis.Redis, words: tuple[str, ...], title: str, waiting: str
) -> None:
    now_ms = int(time.time() * 1000) // MINUTE_MS * MINUTE_MS
    for minute in range(3, -1, -1):
        write(raw, now_ms - minute * MINUTE_MS, waiting=1 + minute)
    lines = rwq("history", "-o", "table", *words).text.splitlines()
    assert lines[0] == title
    assert lines[1].endswith(f"  {waiting}")


@pytest.mark.parametrize("is_far", [False, True])
def test_a_moved_queue_begins_with_the_old_history(
    rwq: Rwq, foreign: Foreign, raw: redis.Redis, start_server: StartServer, *, is_far: bool
) -> None:
    foreign.waiting(b"a", b"b", b"c")
    keys = ("jobs:history", "jobs:history:hours"), ("new:history", "new:history:hours")
    for number, key in enumerate(keys[0]):
        for minute in range(5):
            write(raw, NOW_MS + minute * MINUTE_MS, key, waiting=number, next=b"\xff")
    words = "mv", "--to", "new", "--yes"
    target = raw
    if is_far:
        url = start_server().url
        words, target = (*words, "--to-url", url), redis.Redis.from_url(url)
    assert [rwq(*words, *part).code for part in (["a"], ["--id-glob", "b"])] == [0, 0]
    assert rwq(*words, "--all", "--dry-run").code == 0
    assert not target.exists(*keys[1])
    assert rwq(*words, "--all").code == 0
    histories = [raw.xrange(key) for key in keys[0]]
    assert [len(entries) for entries in histories] == [5, 5]
    assert [target.xrange(key) for key in keys[1]] == histories
    # It has one now.
    raw.delete(*keys[0])
    write(raw, NOW_MS + HOUR_MS)
    foreign.waiting(b"d")
    assert rwq(*words, "--all").code == 0
    assert [target.xrange(key) for key in keys[1]] == histories


def test_purge_removes_it_and_doctor_knows_it(rwq: Rwq, foreign: Foreign, raw: redis.Redis) -> None:
    foreign.waiting(b"a")
    write(raw, NOW_MS)
    write(raw, NOW_MS, "jobs:history:hours")
    assert rwq("doctor", "--grace", "0").code == 0
    assert rwq("purge", "--yes").code == 0
    assert not raw.exists("jobs:history", "jobs:history:hours")


def test_a_queue_that_stands_still_raises_an_alarm(
    rwq: Rwq, queue: WorkQueue, foreign: Foreign, raw: redis.Redis
) -> None:
    foreign.waiting(b"a", b"b")
    for minute in range(13, 0, -1):
        write(raw, queue.now_ms() - minute * MINUTE_MS, done=0)
    findings = {f["code"]: f for f in rwq("doctor", "--grace", "0", "-o", "json").json}
    assert findings["stalled"]["examples"] == ["a"]
    result = rwq("check", "--critical", "stalled=600")
    assert result.code == 2
    assert "the same item next, and nothing done, for 12m" in result.text
    assert rwq("check", "--critical", "stalled=3600").code == 0


@pytest.mark.parametrize(
    ("days", "cells", "minutes"), [(1, 50, 30), (1, 1440, 1), (350, 50, 10_080), (3650, 50, 10_080)]
)
def test_as_many_blocks_as_fit(days: int, cells: int, minutes: int) -> None:
    assert _fitting_step_ms(days * 24 * HOUR_MS, cells) == minutes * MINUTE_MS
