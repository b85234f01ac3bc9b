"""Moving items to a queue in another slot: in order, guarded, and safe to kill at any point."""

from collections.abc import Iterator
from typing import Any

import pytest

from rwq_cli.core import Connection, Server, WorkQueue, connect
from rwq_cli.core.items import move as transfer
from rwq_cli.core.items.journal import NoJournal
from rwq_cli.core.items.lease import lease_ids
from rwq_cli.core.items.move import move as move_items
from rwq_cli.core.server.cluster import QueueConnection
from tests.cluster.conftest import QUEUE
from tests.clusters import PrivateCluster
from tests.driver import Rwq

TO = "{other}"


@pytest.fixture
def other(connection: Connection) -> WorkQueue:
    return WorkQueue(connection, TO, holder="me")


@pytest.fixture(autouse=True)
def in_two_slots(cluster: PrivateCluster) -> None:
    cluster.separate(QUEUE, TO)


def ids(queue: WorkQueue) -> list[bytes]:
    """The waiting IDs, the next first."""
    return list(reversed(queue.call("LRANGE", queue.keys.main, 0, -1)))


def test_items_keep_their_order_and_their_returns(
    crwq: Rwq, queue: WorkQueue, other: WorkQueue
) -> None:
    other.add("there", "there")
    for number in range(600):
        queue.add(b"data %d" % number, b"%d" % number)
    queue.call("HSET", queue.keys.returns, b"7", 3)
    result = crwq("mv", "--to", TO, "--all", "--yes", "-o", "json")
    assert (result.code, result.json["moved"]) == (0, 600), result
    assert ids(queue) == []
    assert ids(other) == [b"there", *(b"%d" % number for number in range(600))]
    assert other.call("HGET", other.keys.returns, b"7") == b"3"
    assert (other.lengths().buried, queue.lengths().buried) == (0, 0)
    assert list(other.lease_many(2))[1].data == b"data 0"


def test_undo_brings_them_back(crwq: Rwq, queue: WorkQueue, other: WorkQueue) -> None:
    for item_id in ("a", "b"):
        queue.add("x", item_id)
    assert crwq("mv", "--to", TO, "--all", "--yes", "-Q").code == 0
    assert crwq("undo", "--yes", "-Q").code == 0
    assert (ids(queue), ids(other)) == ([b"a", b"b"], [])


def test_what_is_not_moved_stays_as_it_is(crwq: Rwq, queue: WorkQueue, other: WorkQueue) -> None:
    for item_id in ("leased", "conflict", "later", "free"):
        queue.add("x", item_id)
    list(lease_ids(queue, [b"leased"]))
    list(queue.release_many([b"later"], delay_s=100))
    other.add("y", "conflict")
    words = ("leased", "conflict", "later", "free", "gone")
    dry = crwq("mv", *words, "--to", TO, "--dry-run", "-o", "jsonl")
    done = crwq("mv", *words, "--to", TO, "--yes", "-o", "jsonl")
    statuses = {"leased": "not-owner", "conflict": "conflict", "later": "not-owner"}
    statuses |= {"free": "moved", "gone": "missing"}
    for result in (dry, done):
        assert result.code == 3
        assert {each["id"]: each["status"] for each in result.jsonl} == statuses
    assert (ids(queue), ids(other)) == ([b"conflict"], [b"conflict", b"free"])
    assert queue.state(b"leased").value == "leased"
    assert queue.state(b"later").value == "delayed"
    forced = crwq("mv", "leased", "later", "--to", TO, "--force", "--yes", "-Q")
    assert forced.code == 0
    assert ids(other) == [b"conflict", b"free", b"leased", b"later"]
    assert queue.lengths().processing == queue.lengths().delayed == 0


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """`made` counts the calls; the call number `kill_at` kills, `after` it was sent or before."""
    plan = {"made": 0, "kill_at": -1, "after": 0}
    send, run_each = QueueConnection.send, QueueConnection.run_each

    def begin() -> int:
        number, plan["made"] = plan["made"], plan["made"] + 1
        if number == plan["kill_at"] and not plan["after"]:
            raise Killed
        return number

    def end(number: int) -> None:
        if number == plan["kill_at"]:
            raise Killed

    def counted(self: Any, requests: Any, patience: Any = None) -> Any:
        number = begin()
        replies = send(self, requests, patience)
        end(number)
        return replies

    def counted_each(self: Any, script: str, keys: Any, calls: Any, **options: Any) -> Any:
        sent: list[int] = []

        def counted_calls() -> Any:
            for call in calls:
                sent.append(begin())
                yield call

        for reply in run_each(self, script, keys, counted_calls(), **options):
            end(sent.pop(0))
            yield reply

    monkeypatch.setattr(QueueConnection, "send", counted)
    monkeypatch.setattr(QueueConnection, "run_each", counted_each)
    yield plan
    plan["kill_at"] = -1


@pytest.mark.parametrize("after", [0, 1])
def test_a_move_may_be_killed_at_any_call(
    cluster: PrivateCluster, calls: dict[str, int], after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("BATCH_PLACES", "BATCH_WRITES"):
        monkeypatch.setattr(transfer, limit, 1)
    wanted = [b"a", b"b", b"c"]
    kill_at = 0
    while True:
        cluster.flush()
        connection = connect(Server(cluster.url))
        here, there = WorkQueue(connection, QUEUE), WorkQueue(connection, TO)
        for item_id in wanted:
            here.add(b"data " + item_id, item_id)
        calls.update(made=0, kill_at=kill_at, after=after)
        try:
            list(move_items(here, wanted, TO.encode(), NoJournal()))
            break
        except Killed:
            calls["kill_at"] = -1
        leasable = ids(here) + ids(there)
        assert sorted(set(leasable)) == sorted(leasable)
        for item_id in wanted:
            assert here.call("EXISTS", here.keys.item(item_id)) or there.call(
                "EXISTS", there.keys.item(item_id)
            )
        # Cleaners leave what is on its way alone.
        for queue in (here, there):
            list(queue.deep_clean(grace_s=0))
        assert sorted(ids(here) + ids(there)) == sorted(leasable)
        list(move_items(here, wanted, TO.encode(), NoJournal()))
        assert ids(here) == []
        assert ids(there) == wanted
        assert there.lengths().buried == here.lengths().buried == 0
        assert here.call("EXISTS", *here.keys.structures, *map(here.keys.lease, wanted)) == 0
        kill_at += 1
    assert kill_at > 8


def test_a_copy_of_an_item_that_was_kicked_here_is_removed(
    cluster: PrivateCluster, calls: dict[str, int]
) -> None:
    connection = connect(Server(cluster.url))
    here, there = WorkQueue(connection, QUEUE), WorkQueue(connection, TO)
    kill_at = 0
    while not (there.lengths().buried and here.lengths().buried):
        cluster.flush()
        here.add("x", "a")
        calls.update(made=0, kill_at=kill_at, after=1)
        with pytest.raises(Killed):
            list(move_items(here, [b"a"], TO.encode(), NoJournal()))
        calls["kill_at"] = -1
        kill_at += 1
    list(here.kick_many([b"a"]))
    list(move_items(here, [], TO.encode(), NoJournal()))
    assert (ids(here), ids(there)) == ([b"a"], [])
    assert there.call("EXISTS", there.keys.item(b"a")) == 0
