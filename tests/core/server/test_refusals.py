"""A server that refuses writes: the errors say why, and nothing is half done."""

from collections.abc import Callable, Iterator

import pytest
from redis import Redis

from rwq_cli.core import NewItem, Server, WorkQueue, connect
from rwq_cli.core.errors import OutOfMemory, PermissionDenied, ReadOnly
from tests.conftest import QUEUE, AsUser, FakeClock, Foreign, contents
from tests.servers import NoServerBinary, PrivateServer, running_server


def queue_at(private: PrivateServer) -> WorkQueue:
    return WorkQueue(connect(Server(private.url)), QUEUE, holder=b"me", clock=FakeClock())


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateServer]:
    """One server for all refusals; each test sets it up for its own."""
    try:
        with running_server("--maxmemory-policy", "noeviction") as started:
            yield started
    except NoServerBinary as reason:
        pytest.skip(str(reason))


@pytest.fixture
def willing(private: PrivateServer) -> Iterator[Redis]:
    """A client of that server, which is empty and takes writes, before the test and after it."""

    def reset() -> None:
        client.execute_command("REPLICAOF", "NO", "ONE")
        client.config_set("min-replicas-to-write", 0)
        client.config_set("maxmemory", 0)
        client.flushall()

    with private.client() as client:
        reset()
        yield client
        reset()


def fill(raw: Redis) -> None:
    foreign = Foreign(raw)
    foreign.waiting(b"waiting")
    foreign.leased(b"leased", holder=b"me")
    foreign.abandoned(b"abandoned")
    foreign.data(b"orphaned")


def test_a_user_without_the_right_to_write(as_user: AsUser, server: PrivateServer) -> None:
    raw = server.client()
    fill(raw)
    before = contents(raw)
    with pytest.raises(PermissionDenied) as caught:
        WorkQueue(as_user("+@read"), QUEUE).add(b"data", b"new")
    assert caught.value.code == "permission-denied"
    assert caught.value.hint == "ask for an ACL rule that allows this command on the queue's keys"
    assert caught.value.acknowledged == 0
    assert contents(raw) == before


@pytest.mark.parametrize(
    ("command", "act"),
    [
        ("setnx", lambda queue: queue.add(b"data", b"new")),
        ("lpush", lambda queue: queue.add(b"data", b"new")),
        ("rpop", lambda queue: queue.lease()),
        ("mset", lambda queue: list(queue.add_many([NewItem(b"new", b"data")], unique=True))),
        ("get", lambda queue: queue.lease()),
        ("exists", lambda queue: list(queue.light_clean(grace_s=0))),
    ],
    ids=["add-setnx", "add-lpush", "lease-rpop", "unique-mset", "lease-get", "clean-exists"],
)
def test_a_script_that_may_not_run_a_command_is_denied_permission(
    as_user: AsUser, server: PrivateServer, command: str, act: Callable[[WorkQueue], object]
) -> None:
    fill(server.client())
    limited = WorkQueue(as_user("+@all", f"-{command}"), QUEUE)
    with pytest.raises(PermissionDenied) as caught:
        act(limited)
    message = caught.value.message
    # Of what a script may not run, Redis 7.0 does not say the name.
    assert f"'{command}'" in message or "can't run this command" in message


def test_a_replica_takes_no_writes(private: PrivateServer, willing: Redis) -> None:
    raw = willing
    # Its primary does not exist, so it keeps what it has.
    raw.execute_command("REPLICAOF", "127.0.0.1", "1")
    connection = connect(Server(private.url, patience_s=0))
    with pytest.raises(ReadOnly) as caught:
        WorkQueue(connection, QUEUE).add(b"data", b"new")
    assert caught.value.code == "read-only"
    assert caught.value.hint == "point -u at the primary"
    assert raw.keys() == []


def test_a_primary_that_misses_its_replicas(private: PrivateServer, willing: Redis) -> None:
    raw = willing
    fill(raw)
    raw.config_set("min-replicas-to-write", 1)
    before = contents(raw)
    with pytest.raises(ReadOnly) as caught:
        list(queue_at(private).deep_clean(grace_s=0))
    assert "NOREPLICAS" in caught.value.message
    assert caught.value.hint == "check its replicas: some are missing"
    assert contents(raw) == before


@pytest.mark.parametrize("owner", [None, b"me"])
def test_a_complete_needs_no_memory(
    private: PrivateServer, willing: Redis, owner: bytes | None
) -> None:
    raw = willing
    foreign = Foreign(raw)
    foreign.leased(b"leased", holder=b"me")
    raw.config_set("maxmemory", 1)
    done = list(queue_at(private).complete_many([b"leased"], owner=owner))
    assert [outcome.status for outcome in done] == ["completed"]
    assert raw.keys() == []


def test_a_batch_without_memory_adds_nothing(private: PrivateServer, willing: Redis) -> None:
    raw = willing
    raw.config_set("maxmemory", raw.info("memory")["used_memory"] + 40_000_000)
    items = (NewItem(b"%d" % number, b"x" * 10_000) for number in range(10_000))
    added = []
    with pytest.raises(OutOfMemory) as caught:
        added.extend(queue_at(private).add_many(items))
    raw.config_set("maxmemory", 0)
    assert caught.value.acknowledged == len(added) > 0
    ids = [outcome.item_id for outcome in added]
    assert raw.lrange(b"jobs:queue", 0, -1) == ids[::-1]
    assert set(raw.keys()) == {b"jobs:queue", *(b"jobs:item:" + item_id for item_id in ids)}
