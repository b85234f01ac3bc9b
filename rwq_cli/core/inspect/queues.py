"""The queues of a server."""

from rwq_cli.core.keys import queue_of_list
from rwq_cli.core.server.connection import Connection
from rwq_cli.core.server.scan import scan_keys


def queue_names(connection: Connection) -> list[bytes]:
    """The names of all queues that have a list or a zset, sorted.

    A queue's name is written nowhere; its keys give it away. Only lists and zsets are asked for
    (SCAN with TYPE), so that a million data keys are passed over on the server and not sent. A
    queue whose items are all orphaned has neither and stays unseen.
    """
    names: set[bytes] = set()
    for kind in ("list", "zset"):
        for page in scan_keys(connection, kind=kind):
            names.update(name for key in page if (name := queue_of_list(key)))
    return sorted(names)
