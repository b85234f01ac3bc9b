"""The queues of a server."""

from rwq_cli.core.handle import Queue
from rwq_cli.core.keys import queue_of_list
from rwq_cli.core.server.connection import Connection
from rwq_cli.core.server.scan import scan_keys


def queue_names(connection: Connection) -> list[bytes]:
    """The names of all queues that have a list or a sorted set, in order.

    A queue's name is stored only in its keys. SCAN returns only lists and sorted sets, so that the
    server does not send a million data keys. A queue whose items are all orphaned has neither, and
    is not found.
    """
    names: set[bytes] = set()
    for kind in ("list", "zset"):
        for page in scan_keys(connection, kind=kind):
            names.update(name for key in page if (name := queue_of_list(key)))
    return sorted(names)


def exists(queue: Queue) -> bool:
    """Whether any key of the queue exists, other than those of items, leases and results."""
    return bool(queue.call("EXISTS", *queue.keys.structures))
