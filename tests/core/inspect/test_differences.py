"""Two queues, compared by ID: what only one has, and what differs."""

import pytest
from redis import Redis

from rwq_cli.core import Connection, State, WorkQueue
from rwq_cli.core.inspect.differences import Difference, Kind, differences
from tests.conftest import Foreign, StartServer, contents

FAR_MS = 10**13


def found(queue: WorkQueue, other: WorkQueue) -> set[Difference]:
    """What differs, each once."""
    each = list(differences(queue, other))
    assert len(set(each)) == len(each)
    return set(each)


@pytest.fixture
def other(connection: Connection) -> WorkQueue:
    return WorkQueue(connection, b"other")


def test_equal_queues_do_not_differ(queue: WorkQueue, other: WorkQueue, raw: Redis) -> None:
    assert found(queue, other) == set()
    for each in (Foreign(raw), Foreign(raw, b"other")):
        each.waiting(b"w1", b"w2", b"\xff")
        each.leased(b"l")
        each.abandoned(b"a")
        each.delayed(b"d", FAR_MS)
        each.buried(b"b")
        each.data(b"o")
        raw.lpush(each.keys.main, b"ghost")
    before = contents(raw)
    assert found(queue, other) == found(other, queue) == set()
    assert contents(raw) == before


def test_what_differs(queue: WorkQueue, other: WorkQueue, raw: Redis) -> None:
    here, there = Foreign(raw), Foreign(raw, b"other")
    here.waiting(b"only here", b"same", b"taken", b"changed", b"twice", b"gone")
    there.waiting(b"same", b"changed", b"twice", b"only there")
    here.delayed(b"planned", FAR_MS)
    there.leased(b"taken")
    there.buried(b"planned")
    there.data(b"lost")
    raw.set("other:item:changed", "other data")
    raw.lpush("other:queue", b"twice", b"gone")
    raw.lpush("jobs:item:odd", b"a list")
    assert found(queue, other) == {
        Difference(b"only here", State.WAITING, None),
        Difference(b"gone", State.WAITING, None),
        Difference(b"odd", State.WRONG_TYPE, None),
        Difference(b"taken", State.WAITING, State.LEASED),
        Difference(b"planned", State.DELAYED, State.BURIED),
        Difference(b"changed", State.WAITING, State.WAITING, same_data=False),
        Difference(b"twice", State.WAITING, State.DUPLICATED),
        Difference(b"only there", None, State.WAITING),
        Difference(b"lost", None, State.ORPHANED),
    }
    kinds = {each.item_id: each.kind for each in differences(queue, other)}
    assert [kinds[each] for each in (b"only here", b"only there", b"taken")] == [
        *(Kind.ONLY_HERE, Kind.ONLY_THERE, Kind.DIFFERS)
    ]


def test_queues_on_two_servers_with_much_data(
    queue: WorkQueue, foreign: Foreign, start_server: StartServer
) -> None:
    """Large data are compared in several calls; a byte in the middle counts."""
    server = start_server()
    with server.client() as raw:
        there = WorkQueue(Connection(raw), b"jobs")
        for number in range(12):
            data = b"%d" % number + bytes(500_000)
            queue.add(data, b"large %d" % number)
            there.add(data[:250_000] + b"x" * (number == 7) + data[250_000:], b"large %d" % number)
        foreign.waiting(*(b"%d" % number for number in range(5000)))
        Foreign(raw).waiting(*(b"%d" % number for number in range(1, 5000)))
        assert found(queue, there) == {
            Difference(b"0", State.WAITING, None),
            Difference(b"large 7", State.WAITING, State.WAITING, same_data=False),
        }
