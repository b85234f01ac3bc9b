"""Replacing the data of items: by comparison with what was read, and of nothing else."""

from hashlib import sha256

import pytest
import redis

from rwq_cli.core import State, Status, WorkQueue
from rwq_cli.core.errors import ConnectionLost
from rwq_cli.core.inspect.places import read_items
from rwq_cli.core.items.lines import Line
from rwq_cli.core.items.restore import OnConflict, edit_items, restore
from rwq_cli.core.state.snapshots import ItemSnapshot, Skipped
from tests.conftest import Foreign, Interleaved, contents
from tests.item_cases import ITEM_CASES, ItemCase
from tests.support import Journal, many

NEW = sha256(b"new").hexdigest()


def read(queue: WorkQueue, item_id: bytes) -> ItemSnapshot:
    ((item,),) = read_items(queue, [item_id], Skipped())
    return item


def edit(
    queue: WorkQueue, item: ItemSnapshot, data: bytes, journal: Journal | None = None
) -> Status:
    (outcome,) = edit_items(queue, [(item, data)], journal)
    assert outcome.item_id == item.item_id
    return outcome.status


def put_back(queue: WorkQueue, edited: dict[ItemSnapshot, str]) -> dict[bytes, Status]:
    lines = [Line(number, *each) for number, each in enumerate(edited.items(), 2)]
    outcomes = restore(queue, lines, on_conflict=OnConflict.REPLACE, in_place=True)
    return {outcome.item_id: outcome.status for outcome in outcomes}


@pytest.mark.parametrize("case", ITEM_CASES.values(), ids=ITEM_CASES)
def test_only_the_data_of_an_item_in_any_state_change(
    queue: WorkQueue, foreign: Foreign, case: ItemCase
) -> None:
    case.make(foreign, b"a")
    before = contents(foreign.raw)
    if case.state.is_item and case.state is not State.WRONG_TYPE:
        assert edit(queue, read(queue, b"a"), b"\x00new\xff") is Status.SET
        before[b"jobs:item:a"] = b"\x00new\xff"
    assert contents(foreign.raw) == before


def test_the_expiry_of_the_data_stays_also_in_an_undo(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    foreign.raw.pexpire("jobs:item:a", 500_000)
    item = read(queue, b"a")
    assert edit(queue, item, b"new") is Status.SET
    assert 400_000 < foreign.raw.pttl("jobs:item:a") <= 500_000
    assert put_back(queue, {item: NEW}) == {b"a": Status.REPLACED}
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
    journal = Journal()
    assert edit(queue, item, b"new", journal) is Status.CHANGED
    assert raw.get("jobs:item:a") == other
    assert (journal.replaced_by, journal.kept) == ({b"a": NEW}, [b"a"])


def test_what_is_another_key_or_gone_by_then_stays_so(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b", b"c")
    edits = [(read(queue, item_id), b"new") for item_id in (b"a", b"b", b"c")]
    edits[2] = edits[2][0], b"data of c"
    queue.complete(b"a")
    foreign.raw.delete("jobs:item:b")
    foreign.raw.lpush("jobs:item:b", "x")
    before = contents(foreign.raw)
    journal = Journal()
    assert {o.item_id: o.status for o in edit_items(queue, edits, journal)} == {
        b"a": Status.MISSING,
        b"b": Status.WRONG_TYPE,
        b"c": Status.UNCHANGED,
    }
    assert contents(foreign.raw) == before
    assert journal.ids == []


def test_many_are_replaced_and_put_back(queue: WorkQueue, foreign: Foreign) -> None:
    ids = many(foreign.raw, 3_000)
    before = contents(foreign.raw)
    journal = Journal()
    items = [ItemSnapshot(i, b"data of " + i, State.WAITING, None) for i in ids]
    done = edit_items(queue, ((item, b"new " + item.item_id) for item in items), journal)
    assert [outcome.item_id for outcome in done if outcome.status is Status.SET] == ids
    assert foreign.raw.mget("jobs:item:0000", "jobs:item:2999") == [b"new 0000", b"new 2999"]
    back = put_back(queue, {item: journal.replaced_by[item.item_id] for item in journal.written})
    assert [item_id for item_id, status in back.items() if status is Status.REPLACED] == ids
    assert contents(foreign.raw) == before


def test_old_data_is_written_first_and_may_be_in_doubt(
    queue: WorkQueue, interleaved: Interleaved, foreign: Foreign
) -> None:
    foreign.waiting(b"a")
    queue = WorkQueue(interleaved, queue.name)
    journal = Journal()
    written: list[int] = []
    item = read(queue, b"a")
    interleaved.before = lambda _name: written.append(len(journal.written))
    assert edit(queue, item, b"new", journal) is Status.SET
    assert written[-1] == 1

    def lose(_name: str) -> None:
        raise ConnectionLost("lost")

    item = item._replace(data=b"new")
    interleaved.before = lose
    with pytest.raises(ConnectionLost):
        edit(queue, item, b"newer", journal)
    assert journal.in_doubt == [b"a"]


def test_only_data_that_was_written_is_put_back(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b", b"c", b"d", b"e")
    edited = {read(queue, item_id): NEW for item_id in (b"a", b"b", b"c", b"d", b"e")}
    foreign.raw.mset({"jobs:item:a": "new", "jobs:item:c": "newer"})
    foreign.raw.delete("jobs:item:d", "jobs:item:e")
    foreign.raw.hset("jobs:item:e", "x", "y")
    queue.bury(b"a")
    assert put_back(queue, edited) == {
        b"a": Status.REPLACED,
        b"b": Status.ALREADY_THERE,
        b"c": Status.CHANGED,
        b"d": Status.MISSING,
        b"e": Status.WRONG_TYPE,
    }
    assert foreign.raw.mget("jobs:item:a", "jobs:item:c") == [b"data of a", b"newer"]
    assert queue.state(b"a") is State.BURIED
