"""Replacing the data of an item: by comparison with what was read, and of nothing else."""

from collections.abc import Sequence
from hashlib import sha256

import pytest
import redis

from rwq_cli.core import State, Status, WorkQueue
from rwq_cli.core.errors import ConnectionLost, WrongType
from rwq_cli.core.items.set_data import read_item, set_data, set_data_back
from rwq_cli.core.state.snapshot import ItemSnapshot
from tests.conftest import Foreign, Interleaved, contents
from tests.item_cases import ITEM_CASES

WITH_DATA = [
    name
    for name, case in ITEM_CASES.items()
    if case.state not in (State.GHOST, State.STRAY_LEASE, State.GONE, State.WRONG_TYPE)
]


class Notes:
    """A journal that remembers what was written, and what was kept after all."""

    def __init__(self) -> None:
        self.written: list[ItemSnapshot] = []
        self.kept: list[bytes] | None = None

    def write(self, items: Sequence[ItemSnapshot]) -> None:
        self.written += items

    def write_results(self, _results: Sequence[object]) -> None:
        raise AssertionError("it has no results")

    def record_removed_except(self, kept: Sequence[bytes]) -> None:
        self.kept = list(kept)


def read(queue: WorkQueue, item_id: bytes) -> ItemSnapshot:
    item = read_item(queue, item_id)
    assert item is not None
    return item


@pytest.mark.parametrize("name", WITH_DATA)
def test_only_the_data_of_an_item_in_any_state_change(
    queue: WorkQueue, foreign: Foreign, name: str
) -> None:
    ITEM_CASES[name].make(foreign, b"a")
    before = contents(foreign.raw)
    assert set_data(queue, read(queue, b"a"), b"\x00new\xff") is Status.SET
    after = contents(foreign.raw)
    assert foreign.raw.get("jobs:item:a") == b"\x00new\xff"
    assert {key: after[key] for key in after if key != b"jobs:item:a"} == {
        key: before[key] for key in before if key != b"jobs:item:a"
    }


@pytest.mark.parametrize("name", [name for name in ITEM_CASES if name not in WITH_DATA])
def test_what_has_no_data_cannot_be_read(queue: WorkQueue, foreign: Foreign, name: str) -> None:
    ITEM_CASES[name].make(foreign, b"a")
    if ITEM_CASES[name].state is State.WRONG_TYPE:
        with pytest.raises(WrongType):
            read_item(queue, b"a")
    else:
        assert read_item(queue, b"a") is None


def test_the_expiry_of_the_data_stays(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    foreign.raw.pexpire("jobs:item:a", 500_000)
    assert set_data(queue, read(queue, b"a"), b"new") is Status.SET
    assert 400_000 < foreign.raw.pttl("jobs:item:a") <= 500_000


# Larger data than a fingerprint looks at, which differ in their middle only.
@pytest.mark.parametrize("data", [b"data of a", b"", b"a" * 6_000_000])
def test_data_that_was_changed_meanwhile_is_left(
    queue: WorkQueue, raw: redis.Redis, data: bytes
) -> None:
    raw.set("jobs:item:a", data)
    item = read(queue, b"a")
    middle = len(data) // 2
    other = data[:middle] + b"b" + data[middle + 1 :]
    raw.set("jobs:item:a", other)
    journal = Notes()
    assert set_data(queue, item, b"new", journal) is Status.CHANGED
    assert raw.get("jobs:item:a") == other
    assert (journal.written, journal.kept) == ([item], [b"a"])


def test_an_item_that_went_meanwhile_stays_gone(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    item = read(queue, b"a")
    list(queue.complete_many([b"a"]))
    assert set_data(queue, item, b"new") is Status.MISSING
    assert foreign.raw.keys() == []


def test_data_that_became_another_type_is_an_error(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    item = read(queue, b"a")
    foreign.raw.delete("jobs:item:a")
    foreign.raw.lpush("jobs:item:a", "x")
    journal = Notes()
    with pytest.raises(WrongType):
        set_data(queue, item, b"new", journal)
    assert journal.kept == [b"a"]


def test_the_same_data_is_not_written(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    journal = Notes()
    assert set_data(queue, read(queue, b"a"), b"data of a", journal) is Status.UNCHANGED
    assert journal.written == []


def test_a_dry_run_says_the_same_and_writes_nothing(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b", b"c")
    items = [read(queue, item_id) for item_id in (b"a", b"b", b"c")]
    foreign.raw.set("jobs:item:b", "other")
    list(queue.complete_many([b"c"]))
    before = contents(foreign.raw)
    journal = Notes()
    foreseen = [set_data(queue, item, b"new", journal, dry_run=True) for item in items]
    assert (contents(foreign.raw), journal.written) == (before, [])
    assert foreseen == [set_data(queue, item, b"new") for item in items]
    assert foreseen == [Status.SET, Status.CHANGED, Status.MISSING]


def test_the_old_data_is_written_first(
    queue: WorkQueue, interleaved: Interleaved, foreign: Foreign
) -> None:
    foreign.waiting(b"a")
    queue.connection = interleaved
    journal = Notes()
    written: list[int] = []
    interleaved.before = lambda _name: written.append(len(journal.written))
    item = read(queue, b"a")
    assert set_data(queue, item, b"new", journal) is Status.SET
    assert interleaved.calls[-1] == "set_data"
    assert (written[-1], journal.written, journal.kept) == (1, [item], [])


def test_what_may_have_been_written_stays_in_doubt(
    queue: WorkQueue, interleaved: Interleaved, foreign: Foreign
) -> None:
    foreign.waiting(b"a")
    queue.connection = interleaved
    item = read(queue, b"a")

    def lose(_name: str) -> None:
        raise ConnectionLost("lost")

    interleaved.before = lose
    journal = Notes()
    with pytest.raises(ConnectionLost):
        set_data(queue, item, b"new", journal)
    assert (journal.written, journal.kept) == ([item], None)


class TestSetDataBack:
    def test_only_where_the_new_data_is_still_there(
        self, queue: WorkQueue, foreign: Foreign
    ) -> None:
        foreign.waiting(b"a", b"b", b"c", b"d", b"e")
        items = [read(queue, item_id) for item_id in (b"a", b"b", b"c", b"d", b"e")]
        foreign.raw.set("jobs:item:a", "new")
        foreign.raw.set("jobs:item:c", "newer")
        foreign.raw.delete("jobs:item:d", "jobs:item:e")
        foreign.raw.hset("jobs:item:e", "x", "y")
        written = sha256(b"new").hexdigest()
        expected = [
            *(Status.SET, Status.ALREADY_THERE, Status.CHANGED, Status.MISSING),
            Status.WRONG_TYPE,
        ]
        before = contents(foreign.raw)
        foreseen = [set_data_back(queue, item, written, dry_run=True) for item in items]
        assert (foreseen, contents(foreign.raw)) == (expected, before)
        assert [set_data_back(queue, item, written) for item in items] == expected
        assert foreign.raw.get("jobs:item:a") == b"data of a"
        assert foreign.raw.get("jobs:item:c") == b"newer"
