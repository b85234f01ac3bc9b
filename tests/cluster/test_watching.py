"""Watching the queues of all primaries of a cluster, as `rwq top` does."""

from rwq_cli.core import Connection, WorkQueue
from rwq_cli.core.inspect.activity import QueueWatch
from rwq_cli.core.inspect.queues import queue_names


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
    assert rates[b"{b}"].in_per_s
    assert rates[b"{a}"].in_per_s == 0
    assert overview.status is not None
    assert overview.status.used_bytes is None
