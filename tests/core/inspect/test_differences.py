"""Two queues, compared by ID: what only one has, and what differs."""

from redis import Redis

from rwq_cli.core import Connection, State, WorkQueue
from rwq_cli.core.inspect.differences import Difference, DifferenceKind, differences
from rwq_cli.core.lua import TOKEN_BYTES
from tests.conftest import Foreign, contents
from tests.item_cases import ITEM_CASES
from tests.support import numbered

FAR_MS = 10**13


def test_what_differs(queue: WorkQueue, connection: Connection, raw: Redis) -> None:
    other = WorkQueue(connection, b"other")
    here, there = Foreign(raw), Foreign(raw, b"other")
    for each in (here, there):
        for name, case in ITEM_CASES.items():
            if case.state is not State.WRONG_TYPE:
                case.make(each, name.encode())
    before = contents(raw)
    assert [*differences(queue, other)] == [*differences(other, queue)] == []
    assert contents(raw) == before
    here.waiting(b"only here", b"same", b"taken", b"changed", b"twice", b"gone now")
    there.waiting(b"same", b"changed", b"twice", b"only there")
    here.delayed(b"planned", FAR_MS)
    there.leased(b"taken")
    there.buried(b"planned")
    there.data(b"lost")
    raw.set("other:item:changed", "other data")
    raw.lpush("other:queue", b"twice", b"gone now")
    raw.lpush("jobs:item:odd", b"a list")
    found = list(differences(queue, other))
    assert len(found) == len(set(found))
    assert set(found) == {
        Difference(b"only here", State.WAITING, None),
        Difference(b"gone now", State.WAITING, None),
        Difference(b"odd", State.WRONG_TYPE, None),
        Difference(b"taken", State.WAITING, State.LEASED),
        Difference(b"planned", State.DELAYED, State.BURIED),
        Difference(b"changed", State.WAITING, State.WAITING, same_data=False),
        Difference(b"twice", State.WAITING, State.DUPLICATED),
        Difference(b"only there", None, State.WAITING),
        Difference(b"lost", None, State.ORPHANED),
    }
    kinds = {each.item_id: each.kind for each in found}
    assert [kinds[each] for each in (b"only here", b"only there", b"taken")] == [
        *(DifferenceKind.ONLY_HERE, DifferenceKind.ONLY_THERE, DifferenceKind.DIFFERS)
    ]


def test_large_data_are_compared_in_several_calls(
    queue: WorkQueue, connection: Connection, raw: Redis
) -> None:
    """A byte in the middle counts."""
    other = WorkQueue(connection, b"other")
    for number in range(13):
        middle = 250_000 if number < 11 else TOKEN_BYTES
        data = b"%d" % number + bytes(2 * middle)
        queue.add(data, b"large %d" % number)
        changed = data[:middle] + b"x" + data[middle + 1 :]
        other.add(changed if number in (7, 11) else data, b"large %d" % number)
    Foreign(raw).waiting(*numbered(5000))
    Foreign(raw, b"other").waiting(*numbered(5000)[1:])
    assert set(differences(queue, other)) == {
        Difference(b"0000", State.WAITING, None),
        Difference(b"large 7", State.WAITING, State.WAITING, same_data=False),
        Difference(b"large 11", State.WAITING, State.WAITING, same_data=False),
    }
