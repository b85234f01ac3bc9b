"""Many queues on the nodes of a cluster."""

from collections.abc import Iterator
from typing import Any

import redis

from benchmarks.cluster import bench_cluster
from benchmarks.filling import PAYLOAD, new_ids
from benchmarks.results import MILLISECONDS, Sample
from benchmarks.turn import Case, Turn

_QUEUES = 50
_TIMES = 5


def _pattern(turn: Turn) -> Iterator[Sample]:
    """A pattern over queues on three nodes against the same queues on one server."""
    items = turn.size(1000)
    turn.server.empty()
    _fill(turn.server.client, items)
    commands = (("queues", "*q*"), ("stats", "-q", "*q*"))
    with bench_cluster() as (url, nodes):
        _fill(redis.RedisCluster(startup_nodes=nodes), items)
        for words in commands * _TIMES:
            alone = turn.rwq(*words, "-o", "plain")
            together = turn.rwq(*words, "-o", "plain", "-u", url)
            title = f"{words[0]} of {_QUEUES} queues with {items:,} items, on 3 nodes"
            yield Sample(
                title, together.seconds, MILLISECONDS, 3, "on one", alone.seconds, together
            )


def _fill(client: Any, items: int) -> None:
    for number in range(_QUEUES):
        name = b"{q%d}" % number
        ids = new_ids(items)
        client.mset({name + b":item:" + item_id: PAYLOAD for item_id in ids})
        client.lpush(name + b":queue", *ids)


CASES = [Case("cluster-pattern", "patterns on a cluster", _pattern)]
