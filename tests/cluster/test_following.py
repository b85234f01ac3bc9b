"""Following the keys of queues on all nodes of a cluster, and behind Sentinel, after a failover."""

from collections.abc import Sequence

from rwq_cli.core import Connection, Server, WorkQueue, connect
from rwq_cli.core.inspect.events import Tail
from rwq_cli.core.inspect.rates import RateMeter, Sample
from tests.clusters import PrivateCluster, PrivateSentinels
from tests.driver import until


def counts(meter: RateMeter, queues: Sequence[WorkQueue]) -> list[tuple[int | None, int | None]]:
    samples = meter.sample(queues)
    return [(s.added, s.done) if isinstance(s, Sample) else (None, None) for s in samples.values()]


def test_queues_on_all_nodes_are_followed(connection: Connection, cluster: PrivateCluster) -> None:
    queues = [WorkQueue(connection, name) for name in ("{a}", "{b}", "{c}", "{d}")]
    assert len({cluster.owner(queue.name) for queue in queues}) > 1
    meter, tail = RateMeter(), Tail()
    tail.look(queues)
    assert counts(meter, queues) == [(None, None)] * 4
    for queue in queues:
        queue.add(b"x", b"1")
        queue.add(b"x", b"2")
        queue.remove(b"1")
    assert counts(meter, queues) == [(2, 1)] * 4
    seen = set()

    def has_all() -> bool:
        seen.update((event.queue, event.item_id) for event in tail.look(queues))
        return len(seen) == 8

    until(has_all)
    # The nodes end the connections of a follower that does not read.
    for number, node in enumerate(cluster.nodes):
        if cluster.is_primary(number):
            node.call("CLIENT", "KILL", "TYPE", "pubsub")
    notes: list[str] = []
    connection.on_wait = notes.append
    for queue in queues:
        queue.connection.on_wait = notes.append
    until(lambda: counts(meter, queues) == [(0, 0)] * 4)
    queues[0].add(b"x", b"3")
    assert counts(meter, queues)[0] == (1, 0)
    assert notes
    assert all("no changes were seen" in note for note in notes)
    meter.close()
    tail.close()


def test_after_a_failover_the_new_primary_is_followed(fresh_sentinels: PrivateSentinels) -> None:
    with connect(Server(fresh_sentinels.url)) as connection:
        queue, notes = WorkQueue(connection, b"jobs"), list[str]()
        connection.on_wait = notes.append
        meter = RateMeter()
        queue.add(b"x", b"1")
        assert counts(meter, [queue]) == [(None, None)]
        fresh_sentinels.fail_over()
        # As `--watch` does, which waits for the server first.
        until(lambda: (queue.call("PING"), counts(meter, [queue]) == [(0, 0)])[1])
        queue.add(b"x", b"2")
        queue.remove(b"1")
        assert counts(meter, [queue]) == [(1, 1)]
        assert any("no changes were seen" in note for note in notes), notes
        meter.close()
