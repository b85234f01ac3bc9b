"""The core queue module: usable without the command line.

    from rwq_cli.core import Server, WorkQueue, connect

It knows the standard library and redis, and nothing of the command line.
"""

from rwq_cli.core.connection import Connection
from rwq_cli.core.discovery import queue_names
from rwq_cli.core.errors import InvalidArgument, NotSupported, RwqError, ServerError
from rwq_cli.core.listing import Selection, Source
from rwq_cli.core.model import (
    CleanAction,
    Counts,
    Facts,
    Item,
    Lease,
    NewItem,
    Outcome,
    Repair,
    State,
    Status,
)
from rwq_cli.core.queue import FOREVER, WorkQueue
from rwq_cli.core.servers import Server, connect, mask_url
from rwq_cli.core.states import state_of

__all__ = [
    "FOREVER",
    "CleanAction",
    "Connection",
    "Counts",
    "Facts",
    "InvalidArgument",
    "Item",
    "Lease",
    "NewItem",
    "NotSupported",
    "Outcome",
    "Repair",
    "RwqError",
    "Selection",
    "Server",
    "ServerError",
    "Source",
    "State",
    "Status",
    "WorkQueue",
    "connect",
    "mask_url",
    "queue_names",
    "state_of",
]
