"""Replacing the data of items: by comparison with what was read, and of nothing else."""

from collections.abc import Sequence
from hashlib import sha256

import pytest
import redis

from rwq_cli.core import State, Status, WorkQueue
from rwq_cli.core.errors import ConnectionLost, WrongType
from rwq_cli.core.items.set_data import edit_items, put_back, read_item
from rwq_cli.core.state.snapshot import ItemSnapshot
from tests.conftest import Foreign, Interleaved, contents
from tests.item_cases import ITEM_CASES

NEW = sha256(b"new").hexdigest()
WITH_DATA = [name for name, case in ITEM_CASES.items() if case.state.is_item]


class Notes:
    """A journal that remembers what was written, and what was kept after all."""

    def __init__(self) -> None:
        self.written: list[tuple[ItemSnapshot, str]] = []
        self.kept: list[bytes] | None = None

    def write(self, items: Sequence[ItemSnapshot], replaced_by: Sequence[str] = ()) -> None:
        self.written += zip(items, replaced_by, strict=True)

    def write_results(self, *_: object) -> None:
        raise AssertionError("it has no results")

    def record_removed_except(self, kept: Sequence[bytes]) -> None:
        self.kept = list(kept)


def read(queue: WorkQueue, item_id: bytes) -> ItemSnapshot:
    item = read_item(queue, item_id)
    assert item is not None
    return item


def edit(queue: WorkQueue, item: ItemSnapshot, data: bytes, journal: Notes | None = None) -> Status:
    (outcome,) = edit_items(queue, [(item, data)], journal)
    assert outcome.item_id == item.item_id
    return outcome.status


@pytest.mark.parametrize("name", WITH_DATA)
def test_only_the_data_of_an_item_in_any_state_change(
    queue: WorkQueue, foreign: Foreign, name: str
) -> None:
    ITEM_CASES[name].make(foreign, b"a")
    before = contents(foreign.raw)
    assert edit(queue, read(queue, b"a"), b"\x00new\xff") is Status.SET
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
    assert edit(queue, read(queue, b"a"), b"new") is Status.SET
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
    assert edit(queue, item, b"new", journal) is Status.CHANGED
    assert raw.get("jobs:item:a") == other
    assert (journal.written, journal.kept) == ([(item, NEW)], [b"a"])


def test_an_item_that_went_meanwhile_stays_gone(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    item = read(queue, b"a")
    list(queue.complete_many([b"a"]))
    assert edit(queue, item, b"new") is Status.MISSING
    assert foreign.raw.keys() == []


def test_data_that_became_another_type_stays(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    item = read(queue, b"a")
    foreign.raw.delete("jobs:item:a")
    foreign.raw.lpush("jobs:item:a", "x")
    assert edit(queue, item, b"new") is Status.WRONG_TYPE
    assert foreign.raw.lrange("jobs:item:a", 0, -1) == [b"x"]


def test_the_same_data_is_not_written(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    journal = Notes()
    assert edit(queue, read(queue, b"a"), b"data of a", journal) is Status.UNCHANGED
    assert journal.written == []


def test_a_dry_run_says_the_same_and_writes_nothing(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b", b"c", b"d")
    edits = [(read(queue, item_id), b"new") for item_id in (b"a", b"b", b"c", b"d")]
    foreign.raw.set("jobs:item:b", "other")
    queue.complete(b"c")
    edits[3] = (edits[3][0], b"data of d")
    before = contents(foreign.raw)
    journal = Notes()
    foreseen = list(edit_items(queue, edits, journal, dry_run=True))
    assert (contents(foreign.raw), journal.written) == (before, [])
    assert foreseen == list(edit_items(queue, edits))
    assert {o.item_id: o.status for o in foreseen} == {
        b"a": Status.SET, b"b": Status.CHANGED, b"c": Status.MISSING, b"d": Status.UNCHANGED,
    }  # fmt: skip


def test_many_are_replaced_and_put_back(queue: WorkQueue, foreign: Foreign) -> None:
    ids = [b"%d" % number for number in range(12_000)]
    foreign.waiting(*ids)
    before = contents(foreign.raw)
    journal = Notes()
    items = [ItemSnapshot(i, b"data of " + i, State.WAITING, None) for i in ids]
    done = edit_items(queue, ((item, b"new " + item.item_id) for item in items), journal)
    assert [outcome.item_id for outcome in done if outcome.status is Status.SET] == ids
    assert foreign.raw.mget([f"jobs:item:{i}" for i in (0, 11_999)]) == [b"new 0", b"new 11999"]
    back = put_back(queue, journal.written)
    assert [outcome.item_id for outcome in back if outcome.status is Status.SET] == ids
    assert contents(foreign.raw) == before


def test_by_its_public_name(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    assert [o.status for o in queue.edit_many([("a", b"other", b"new")])] == [Status.CHANGED]
    assert [o.status for o in queue.edit_many([("a", b"data of a", b"new")])] == [Status.SET]
    assert foreign.raw.get("jobs:item:a") == b"new"


def test_the_old_data_is_written_first(
    queue: WorkQueue, interleaved: Interleaved, foreign: Foreign
) -> None:
    foreign.waiting(b"a")
    queue.connection = interleaved
    journal = Notes()
    written: list[int] = []
    interleaved.before = lambda _name: written.append(len(journal.written))
    item = read(queue, b"a")
    assert edit(queue, item, b"new", journal) is Status.SET
    assert interleaved.calls[-1] == "set_data"
    assert (written[-1], journal.written, journal.kept) == (1, [(item, NEW)], [])


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
        edit(queue, item, b"new", journal)
    assert (journal.written, journal.kept) == ([(item, NEW)], None)


def test_only_data_that_was_written_is_put_back(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b", b"c", b"d", b"e")
    edited = [(read(queue, item_id), NEW) for item_id in (b"a", b"b", b"c", b"d", b"e")]
    foreign.raw.set("jobs:item:a", "new")
    foreign.raw.set("jobs:item:c", "newer")
    foreign.raw.delete("jobs:item:d", "jobs:item:e")
    foreign.raw.hset("jobs:item:e", "x", "y")
    expected = {
        b"a": Status.SET, b"b": Status.ALREADY_THERE, b"c": Status.CHANGED,
        b"d": Status.MISSING, b"e": Status.WRONG_TYPE,
    }  # fmt: skip
    before = contents(foreign.raw)
    foreseen = {o.item_id: o.status for o in put_back(queue, edited, dry_run=True)}
    assert (foreseen, contents(foreign.raw)) == (expected, before)
    assert {o.item_id: o.status for o in put_back(queue, edited)} == expected
    assert foreign.raw.mget("jobs:item:a", "jobs:item:c") == [b"data of a", b"newer"]
