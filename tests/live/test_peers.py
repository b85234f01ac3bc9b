"""Real workers of redis-work-queue 0.1.5, in Python and Node.js, on one queue with us.

0.1.5 decides a complete by its LREM; that is the one thing in which it is weaker than the protocol
says, and `test_two_completes_of_0_1_5_can_both_win` holds it fast.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
import redis_work_queue as upstream

from rwq_cli.core import NewItem, Server, Status, WorkQueue, connect
from tests.live.peer_worker import MortalRedis
from tests.live.peers import Entry, Peer, encoded
from tests.live.raw_keys import RawKeys, end_settling_leases, read_raw_keys
from tests.servers import PrivateServer

QUEUE = "jobs:é"
_LEASE_S = 100

Do = Callable[..., list[Entry]]


@pytest.fixture
def queue(live_server: PrivateServer) -> Iterator[WorkQueue]:
    connection = connect(Server(live_server.url))
    yield WorkQueue(connection, QUEUE)
    connection.close()


@pytest.fixture
def db(live_server: PrivateServer) -> Iterator[redis.Redis]:
    with live_server.client() as client:
        yield client


@pytest.fixture
def do(peer: Peer, live_server: PrivateServer, tmp_path: Path) -> Do:
    """A worker of upstream's does something on the queue."""
    told: dict[str, Any] = {"socket": live_server.socket, "queue": QUEUE, "lease_s": _LEASE_S}
    return partial(peer.do, book=tmp_path / "book", **told)


@pytest.fixture
def look(db: redis.Redis) -> Callable[[], RawKeys]:
    return lambda: read_raw_keys(db, QUEUE.encode())


def some_items() -> list[NewItem]:
    """Text, all bytes, nothing, and more than one batch of ours."""
    payloads = [b"some work", bytes(range(256)), b"", b"\r\n$3\r\n", "żółw".encode()]
    named = [NewItem(f"naïve:{n}".encode(), data) for n, data in enumerate(payloads)]
    return named + [NewItem(b"item-%d" % n, b"data-%d" % n) for n in range(1500)]


def test_a_peer_leases_and_completes_what_we_added(
    queue: WorkQueue, do: Do, db: redis.Redis
) -> None:
    items = some_items()
    assert {outcome.status for outcome in queue.add_many(items)} == {Status.ADDED}

    book = do("work")

    entries = [(entry.did, NewItem(entry.item_id, entry.data)) for entry in book]
    assert [item for did, item in entries if did == "leased"] == items
    assert [item for did, item in entries if did == "completed"] == items
    assert db.keys() == []


def test_we_lease_and_complete_what_a_peer_added(queue: WorkQueue, do: Do, db: redis.Redis) -> None:
    items = some_items()[:200]
    do("add", items=encoded(items))

    leased = [NewItem(item.item_id, item.data) for item in queue.lease_many(1000)]

    assert leased == items
    outcomes = list(queue.complete_many([item.item_id for item in items]))
    assert {outcome.status for outcome in outcomes} == {Status.COMPLETED}
    assert len(outcomes) == len(items)
    assert db.keys() == []


def test_one_of_our_complete_and_a_peers_wins(queue: WorkQueue, do: Do, db: redis.Redis) -> None:
    for number in range(4):
        queue.add(b"data", b"%d" % number)
    do("lease")

    ours = [outcome.status for outcome in queue.complete_many([b"0", b"1"])]
    theirs = [e.did for e in do("complete", ids=["0", "1", "2", "3"]) if e.did != "intends"]
    again = [outcome.status for outcome in queue.complete_many([b"2", b"3"])]

    assert ours == [Status.COMPLETED] * 2
    assert theirs == ["refused", "refused", "completed", "completed"]
    assert again == [Status.MISSING] * 2
    assert db.keys() == []


def test_a_peers_clean_leaves_our_leases_alone(
    queue: WorkQueue, do: Do, look: Callable[[], RawKeys]
) -> None:
    queue.add(b"data", b"ours")
    queue.lease(for_s=_LEASE_S)
    before = look()

    do("clean")

    assert look() == before


def test_our_cleans_leave_a_peers_leases_until_ended(
    queue: WorkQueue, do: Do, look: Callable[[], RawKeys], db: redis.Redis
) -> None:
    do("add", items=encoded([NewItem(b"theirs", b"data")]))
    do("lease")
    before = look()

    assert list(queue.light_clean(grace_s=0)) == []
    assert list(queue.deep_clean(grace_s=0)) == []
    assert look() == before

    db.pexpire(queue.keys.old_lease(b"theirs"), 1)
    while db.exists(queue.keys.old_lease(b"theirs")):
        pass
    assert [action.item_id for action in queue.light_clean(grace_s=0)] == [b"theirs"]
    (completed,) = [e for e in do("work") if e.did == "completed"]
    assert (completed.item_id, completed.data) == (b"theirs", b"data")


@pytest.mark.parametrize("winner", ["a second worker", "our complete"])
def test_two_completes_of_0_1_5_can_both_win(
    live_server: PrivateServer, queue: WorkQueue, db: redis.Redis, winner: str
) -> None:
    """It reports success when its LREM removed something, and only then deletes the data.

    If it stalls in between until its lease and a cleaner's grace period are over, the item is an
    orphan like that of a worker that died there, and every deep clean of every language brings it
    back: both workers are told that they won. A complete that goes by its DEL needs no clean for
    that, only to come in between. Nothing of ours can prevent it; later versions go by their DEL.
    """
    first, second = (upstream.WorkQueue(upstream.KeyPrefix(QUEUE)) for _ in range(2))
    others_won = []

    def stall(command: str) -> None:
        if command != "EXEC":
            return
        if winner == "our complete":
            (outcome,) = queue.complete_many([b"id"])
            others_won.append(outcome.status is Status.COMPLETED)
            return
        assert list(queue.deep_clean(grace_s=0)) == [], "its lease still protects it"
        db.delete(queue.keys.old_lease(b"id"))
        list(queue.deep_clean(grace_s=0))
        again = second.lease(db, _LEASE_S, block=False)
        others_won.append(second.complete(db, again))

    with MortalRedis(unix_socket_path=str(live_server.socket)) as stalling:
        stalling.meet(lambda _command: None)
        first.add_item(stalling, upstream.Item(b"data", "id"))
        item = first.lease(stalling, _LEASE_S, block=False)
        stalling.meet(stall)
        first_won = first.complete(stalling, item)

    assert (first_won, others_won) == (True, [True])
    # What is left of a return goes with the next clean, or ends by itself.
    list(queue.light_clean(grace_s=0))
    end_settling_leases(db, queue.name)
    assert db.keys() == []
