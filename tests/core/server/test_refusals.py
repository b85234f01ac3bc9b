"""Every write on a server that refuses it: it is done wholly or not at all."""

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


# Everything that writes, on a queue that has something to do for each.
WRITES: list[tuple[str, Callable[[WorkQueue], object]]] = [
    ("add", lambda queue: queue.add(b"x" * 100, b"new")),
    ("add unique", lambda queue: queue.add_unique(b"x" * 100, b"new")),
    ("lease", lambda queue: queue.lease()),
    ("complete", lambda queue: list(queue.complete([b"waiting", b"leased"]))),
    ("complete as owner", lambda queue: list(queue.complete([b"leased"], owner=b"me"))),
    ("touch", lambda queue: list(queue.touch([b"leased"]))),
    ("release", lambda queue: list(queue.release([b"leased"]))),
    ("release an orphan", lambda queue: list(queue.release([b"orphaned"]))),
    ("release to the front", lambda queue: list(queue.release([b"leased"], front=True))),
    ("light clean", lambda queue: list(queue.light_clean(grace_s=0))),
    ("deep clean", lambda queue: list(queue.deep_clean(grace_s=0))),
]
each_write = pytest.mark.parametrize("write", [w for _, w in WRITES], ids=[n for n, _ in WRITES])


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
        ("mset", lambda queue: queue.add_unique(b"data", b"new")),
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


@each_write
def test_a_replica_takes_no_writes(
    private: PrivateServer, willing: Redis, write: Callable[[WorkQueue], object]
) -> None:
    raw = willing
    fill(raw)
    # Its primary does not exist, so it keeps what it has.
    raw.execute_command("REPLICAOF", "127.0.0.1", "1")
    before = contents(raw)
    with pytest.raises(ReadOnly) as caught:
        write(queue_at(private))
    assert caught.value.code == "read-only"
    assert caught.value.hint == "point -u at the primary"
    assert contents(raw) == before


@each_write
def test_a_primary_that_misses_its_replicas(
    private: PrivateServer, willing: Redis, write: Callable[[WorkQueue], object]
) -> None:
    raw = willing
    fill(raw)
    raw.config_set("min-replicas-to-write", 1)
    before = contents(raw)
    with pytest.raises(ReadOnly) as caught:
        write(queue_at(private))
    assert "NOREPLICAS" in caught.value.message
    assert caught.value.hint == "check its replicas: some are missing"
    assert contents(raw) == before


# These free memory. The others set leases or guards, if only for a while.
WORK_WITHOUT_MEMORY = {"complete", "complete as owner"}


@pytest.mark.parametrize(("name", "write"), WRITES, ids=[name for name, _ in WRITES])
def test_a_server_without_memory_leaves_nothing_half_done(
    private: PrivateServer, willing: Redis, name: str, write: Callable[[WorkQueue], object]
) -> None:
    raw = willing
    fill(raw)
    before = contents(raw)
    write(queue_at(private))
    wholly = contents(raw)
    raw.flushall()
    fill(raw)
    raw.config_set("maxmemory", 1)
    if name in WORK_WITHOUT_MEMORY:
        write(queue_at(private))
        assert contents(raw) == wholly
        return
    with pytest.raises(OutOfMemory) as caught:
        write(queue_at(private))
    assert caught.value.code == "out-of-memory"
    assert caught.value.hint == "raise its maxmemory or complete some items"
    assert contents(raw) == before


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
