"""Which server an undo file is from: another one may answer at its address later.

A server is known by the ID of its run, or if that has changed, because it was restarted or another
node took over, by a key of ours: `Q:undo:server`, a string that names the data of one database for
as long as it is kept, `_KEY_S` after the last undo file.
"""

from secrets import token_hex
from typing import NamedTuple

from rwq_cli.core.errors import ServerError, text_of
from rwq_cli.core.handle import Queue
from rwq_cli.core.server.urls import is_same_database
from rwq_cli.output.export_lines import UndoOrigin

_KEY_S = 90 * 24 * 3600


class ServerMark(NamedTuple):
    """How a server is known; None for what it does not say."""

    run_id: str | None
    server_key: str | None


def mark_server(queue: Queue) -> ServerMark:
    """Return how the queue's server is known, and leave our key there, if this user may."""
    key = queue.keys.undo(queue.keys.UNDO_SERVER)
    commands = ("SET", key, token_hex(8), "NX", "EX", _KEY_S), ("EXPIRE", key, _KEY_S)
    queue.connection.call_all(commands, return_errors=True)
    return read_mark(queue) or ServerMark(None, None)


def read_mark(queue: Queue) -> ServerMark | None:
    """Return how the queue's server is known; None if this user may not ask."""
    commands = ("INFO", "server"), ("GET", queue.keys.undo(queue.keys.UNDO_SERVER))
    info, value = queue.connection.call_all(commands, return_errors=True)
    if isinstance(info, ServerError) and isinstance(value, ServerError):
        return None
    run_id = info.get("run_id") if isinstance(info, dict) else None
    return ServerMark(run_id, text_of(value) if isinstance(value, bytes) else None)


def is_from(queue: Queue, origin: UndoOrigin) -> bool:
    """Return True if an undo file was written when the queue was on this server."""
    if origin.run_id is origin.server_key is None:
        # The server said nothing of itself: only its address is known.
        return True
    mark = read_mark(queue)
    if mark is None:
        # This user may read neither.
        return True
    if origin.server_key is not None and origin.server_key == mark.server_key:
        return True
    is_one_run = origin.run_id is not None and origin.run_id == mark.run_id
    return is_one_run and is_same_database(origin.server, queue.connection.address)
