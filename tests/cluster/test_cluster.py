"""Redis Cluster: one queue in its slot, names without a hash tag, the queues of all primaries."""

import re
from collections import Counter
from threading import Thread
from typing import Any

import pytest
from redis.crc import key_slot

from rwq_cli.core import Connection, NewItem, Server, Status, WorkQueue, connect
from rwq_cli.core.batches import FLUSH
from rwq_cli.core.errors import Unavailable
from rwq_cli.core.inspect.queues import queue_names
from rwq_cli.core.keys import QueueKeys
from rwq_cli.top.watch import QueueWatch
from tests.cluster.conftest import QUEUE, WAITING
from tests.clusters import Moving, PrivateCluster
from tests.conftest import Foreign
from tests.driver import Result, Rwq

# One queue on each of the three primaries.
ON_EACH = ("{a}", "{b}", "{c}")


# Lines that are run in order, each with the exit code and what its output holds.
LIFE = (
    ("add --id a --id-from line x", 2, ""),
    ("add --id a one -o ids", 0, "a"),
    ("add --id b two --delay 1h -o ids", 0, "b"),
    ("add --id c three -o ids", 0, "c"),
    ("add --unchecked --id d four", 0, ""),
    ("ls -o ids", 0, "a\nc\nd"),
    ("ls all -o ids", 0, "a\nc\nd\nb"),
    ("stats --deep -o json", 0, '"delayed": 1'),
    ("show a", 0, "waiting"),
    ("lease -o ids", 0, "a"),
    ("leases -o ids", 0, "a"),
    ("touch a --for 10m", 0, ""),
    ("release a --front", 0, ""),
    ("lease --id c -o ids", 0, "c"),
    ("complete c --result -", 0, ""),
    ("result c -o json", 0, '"completed"'),
    ("bury a --reason because", 0, ""),
    ("ls buried -o ids", 0, "a"),
    ("kick a", 0, ""),
    ("edit a -f -", 0, ""),
    ("mv a --to jobs --yes", 2, ""),
    ("mv --to {jobs}:2 --all --yes", 0, ""),
    ("ls -q {jobs}:2 -o ids", 0, "a"),
    ("undo --yes", 0, ""),
    ("rm d --yes", 0, ""),
    ("undo --list -o json", 0, '"verb": "rm"'),
    ("export", 0, '"id": "a"'),
    ("clean light --grace 0", 0, ""),
    ("clean deep --grace 0", 0, ""),
    ("doctor --fix --grace 0 -o json", 0, ""),
    ("check --warn waiting=100", 0, "OK"),
    ("wait --below 100", 0, ""),
    ("queues -o ids", 0, QUEUE),
    ("work --drain -- true", 0, ""),
    ("undo --list --older-than 0", 0, ""),
    ("context check -o json", 0, '"undo": true'),
    ("purge --yes", 0, ""),
    ("wait --until-empty", 0, ""),
)


def test_every_command_runs_on_the_slot_of_the_queue(crwq: Rwq) -> None:
    for line, code, shown in LIFE:
        result = crwq(*line.split(), stdin=b"new data")
        assert (result.code, shown in result.text) == (code, True), (line, result)
        if code == 0:
            assert WAITING not in result.notes, (line, result)


def test_a_worker_takes_from_queues_in_different_slots(connection: Connection) -> None:
    """Also what falls due in the last of them, while it is idle."""
    queues = [WorkQueue(connection, name) for name in ("{a}", "{b}", "{c}")]
    assert len({key_slot(queue.name) for queue in queues}) == 3
    for queue in queues:
        queue.add(b"data", b"now")
    queues[2].add(b"data", b"later", delay_s=1.5)
    ran: list[tuple[bytes, bytes]] = []
    summary = queues[0].work(
        lambda job: ran.append((job.queue, job.item_id)), more_queues=queues[1:], max_items=4
    )
    assert summary.fates == {"completed": 4}
    assert ran == [*((queue.name, b"now") for queue in queues), (b"{c}", b"later")]


@pytest.mark.parametrize(
    "line", ["add x", "lease --wait", "clean deep --grace 0", "mv a --to {jobs} --yes", "ls"]
)
def test_a_name_without_a_hash_tag_is_refused(
    crwq: Rwq, cluster: PrivateCluster, line: str
) -> None:
    cluster.client("jobs:queue").lpush("jobs:queue", "a")
    result = crwq(*line.split(), "-q", "jobs")
    assert result.as_tuple() == (
        2,
        "",
        "rwq: error: jobs has no hash tag: on a cluster its keys are on several nodes; "
        "name the queue {jobs}: its keys are then in one slot\n",
    )


def test_what_is_there_under_a_name_without_a_hash_tag(crwq: Rwq, cluster: PrivateCluster) -> None:
    cluster.client("jobs:queue").lpush("jobs:queue", "a", "b")
    cluster.client("jobs:buried").zadd("jobs:buried", {"c": 1})
    assert crwq("queues").lines == ["jobs\t2\t0\t0\t1\t0"]
    cluster.client("jobs:processing").lpush("jobs:processing", "d")
    assert crwq("queues").lines == ["jobs\t2\t1\t0\t1"]
    counts = crwq("stats", "--fast", "-q", "jobs", "-o", "json").json
    assert (counts["waiting"], counts["buried"]) == (2, 1)


def test_the_queues_of_all_primaries_are_found(crwq: Rwq) -> None:
    for name in ON_EACH:
        crwq("add", "-q", name, "one", "-Q")
    assert crwq("queues", "-o", "ids").lines == list(ON_EACH)
    assert [each["queue"] for each in crwq("stats", "-q", "*", "-o", "json").json] == list(ON_EACH)
    assert len(crwq("ls", "--all-queues").lines) == 3
    assert crwq("clean", "light", "--all-queues", "--grace", "0").code == 0


@pytest.mark.parametrize("all_exist", [pytest.param(False, marks=pytest.mark.ci), True])
def test_nothing_runs_half_while_a_slot_moves(
    queue: WorkQueue, cluster: PrivateCluster, all_exist: bool
) -> None:
    """Even if all keys that a script names are there, others that it reads may have moved."""
    queue.add("one", "1")
    keys = QueueKeys(QUEUE.encode())
    client = cluster.client(QUEUE)
    if all_exist:
        client.lpush(keys.processing, "x")
        client.lpush(keys.cleaning, "x")
        client.zadd(keys.delayed, {"x": 2e12})
        client.zadd(keys.buried, {"x": 1})
        client.hset(keys.returns, "x", "1")
    moving = Moving(cluster, QUEUE, keys.item(b"1"))
    impatient = WorkQueue(connect(Server(cluster.url, patience_s=0.3)), QUEUE)
    for act in (
        lambda: impatient.lease(),
        lambda: impatient.add("two", "2"),
        lambda: list(impatient.add_many([NewItem(b"2", b"two")], unique=True)),
        lambda: list(impatient.complete_many([b"1"])),
        lambda: impatient.state(b"1"),
        lambda: list(impatient.deep_clean(grace_s=0)),
        lambda: impatient.counts(),
        lambda: impatient.call("EXISTS", keys.item(b"1")),
    ):
        with pytest.raises(Unavailable) as caught:
            act()
        assert "is moving this queue to another node" in caught.value.message
    moving.finish()
    assert queue.lengths().waiting == 1
    assert queue.lease().item_id == b"1"


def test_a_command_waits_for_a_moving_slot_and_tells(crwq: Rwq, cluster: PrivateCluster) -> None:
    crwq("add", "--id", "1", "one", "-Q")
    moving = Moving(cluster, QUEUE, QueueKeys(QUEUE.encode()).item(b"1"))
    process = crwq.start("lease", "-o", "data")
    assert process.stderr is not None
    told = process.stderr.readline()
    assert told.decode().startswith(WAITING)
    moving.finish()
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"one")


def test_a_stream_goes_on_on_the_other_node(queue: WorkQueue, cluster: PrivateCluster) -> None:
    """Calls are in flight while the slot moves: what is refused is sent again, and only that."""
    moving: list[Moving] = []
    threads: list[Thread] = []

    def items() -> Any:
        for number in range(3000):
            if number == 1000:
                moving.append(Moving(cluster, QUEUE, QueueKeys(QUEUE.encode()).item(b"7")))
                threads.append(Thread(target=moving[0].finish))
                threads[0].start()
            if number == 2000:
                yield FLUSH
            yield NewItem(b"%d" % number, b"data")

    statuses = Counter(outcome.status for outcome in queue.add_many(items()))
    threads[0].join()
    assert statuses == {Status.ADDED: 3000}
    waiting = cluster.client(QUEUE).lrange("{jobs}:queue", 0, -1)
    assert len(waiting) == len(set(waiting)) == 3000
    assert cluster.owner(QUEUE) == moving[0].to


def test_a_single_server_is_not_a_cluster(bare_rwq: Rwq, sentinels: Any) -> None:
    port = sentinels.primary().port
    result = bare_rwq("queues", "-u", f"redis+cluster://127.0.0.1:{port}")
    assert result.as_tuple() == (
        69,
        "",
        f"rwq: error: redis+cluster://127.0.0.1:{port} is not a Redis Cluster; "
        "use redis:// for a single server, redis+sentinel:// for Sentinels\n",
    )
    result = bare_rwq("queues", "-u", f"redis+cluster://127.0.0.1:{sentinels.sentinels[0].port}")
    assert result.code == 69
    assert "is not a Redis Cluster; use " in result.notes


def test_a_node_by_its_own_address_names_the_cluster(
    bare_rwq: Rwq, cluster: PrivateCluster
) -> None:
    other = next(n for n in range(3) if n != cluster.owner(QUEUE))
    url = f"redis://127.0.0.1:{cluster.nodes[other].port}"
    result = bare_rwq("add", "-q", QUEUE, "x", "-u", url)
    assert result.code == 69
    assert "MOVED" in result.notes
    assert "use redis+cluster:// in place of redis://" in result.notes


_READS = (
    *("ls -n 0 -o jsonl", "ls all --deep -n 0 -o ids", "show {ids} -o ids", "leases -o jsonl"),
    *(
        "stats --deep -o json",
        "queues -o json",
        "export",
        "doctor --grace 0 -o json --skip flushed,restarted",
    ),
    *("check --warn abandoned=1 --deep", "ls --match x -n 0 -o ids", "queues *"),
)
# What differs from one run to the next: times, and what depends on the order of a scan.
_VARYING = re.compile(
    r'"(\w+_ms|\w+_seconds|examples|examples_b64)": ?(\[.*?\]|[\d.]+|null)|oldest \d+s'
    r"|lease=\d+s|age=\d+s|age>=\d+s, server up \d+s"
)


def said(result: Result) -> tuple[int, list[str]]:
    """What it came to: the exit code, and the lines of its output in some order."""
    return result.code, sorted(_VARYING.sub("", result.text).splitlines())


@pytest.mark.ci
def test_reads_during_a_slot_migration_are_right(crwq: Rwq, cluster: PrivateCluster) -> None:
    ids = [b"%d" % number for number in range(1000)]
    raw, keys = cluster.client(QUEUE), QueueKeys(QUEUE.encode())
    foreign = Foreign(raw, QUEUE.encode())
    foreign.waiting(*ids[:600])
    foreign.abandoned(*ids[600:900])
    raw.mset({keys.item(item_id): b"x" for item_id in ids[900:]})
    for item_id in ids[700:900]:
        raw.set(keys.lease(item_id), b"them", px=10_000_000)
    some = " ".join(str(number) for number in range(0, 1000, 50))
    lines = [line.format(ids=some).split() for line in _READS]
    expected = [said(crwq(*words)) for words in lines]
    moving = Moving(cluster, QUEUE)
    mover = Thread(target=moving.finish, kwargs={"pause_s": 0.02})
    mover.start()
    while mover.is_alive():
        assert [said(crwq(*words)) for words in lines] == expected
    mover.join()
    assert [said(crwq(*words)) for words in lines] == expected


def test_queues_on_all_primaries_are_rows(connection: Connection) -> None:
    for number, name in enumerate(("{a}", "{b}", "{c}")):
        queue = WorkQueue(connection, name)
        queue.add(b"x" * number)
        queue.call("LPUSH", queue.keys.processing, "ghost")
        queue.call("SET", queue.keys.item(b"lost"), "x")
        queue.call("LPUSH", queue.keys.processing, "lost")
    # Its keys are in several slots.
    for key in (b"plain:queue", b"plain:processing"):
        connection.call("LPUSH", key, "x")
    watch = QueueWatch(connection, queue_names(connection))
    overview = watch.tick()
    assert [(row.queue, row.sample.waiting, row.abandoned) for row in overview.rows] == [
        (b"plain", 1, None),
        *((name, 1, 1) for name in (b"{a}", b"{b}", b"{c}")),
    ]
    assert overview.left_out == []
    WorkQueue(connection, "{b}").add(b"y")
    rates = {row.queue: row.rates for row in watch.tick().rows}
    assert rates[b"{b}"].added_per_s
    assert rates[b"{a}"].added_per_s == 0
    assert overview.status is not None
    assert overview.status.used_bytes is None


def test_items_move_to_another_slot_in_order_and_back(
    crwq: Rwq, queue: WorkQueue, connection: Connection, cluster: PrivateCluster
) -> None:
    cluster.separate(QUEUE, "{other}")
    other = WorkQueue(connection, "{other}", holder="me")
    other.add("there", "there")
    ids = [b"%d" % number for number in range(600)]
    list(queue.add_many(NewItem(item_id, b"data of " + item_id) for item_id in ids))
    queue.call("HSET", queue.keys.returns, b"7", 3)
    result = crwq("mv", "--to", "{other}", "--all", "--yes", "-o", "json")
    assert (result.code, result.json["moved"]) == (0, 600), result
    assert queue.call("LRANGE", queue.keys.main, 0, -1) == []
    assert other.call("LRANGE", other.keys.main, 0, -1) == [*ids[::-1], b"there"]
    assert other.call("HGET", other.keys.returns, b"7") == b"3"
    assert (other.lengths().buried, queue.lengths().buried) == (0, 0)
    assert crwq("undo", "--yes", "-Q").code == 0
    assert queue.call("LRANGE", queue.keys.main, 0, -1) == ids[::-1]
    assert other.call("LRANGE", other.keys.main, 0, -1) == [b"there"]
    assert next(queue.lease_many(1)).data == b"data of 0"
