"""Which server an undo file is from: another one may answer at its address later.

A server is known by the ID of its run, or if that has changed, because it was restarted or another
node took over, by a key of ours: `Q:undo:server`, a string that names the data of one database for
as long as it is kept, `_KEY_S` after the last undo file.
"""

from secrets import token_hex
from typing import Any, NamedTuple

from rwq_cli.core.clock import unix_ms
from rwq_cli.core.errors import ServerError, text_of
from rwq_cli.core.handle import Queue
from rwq_cli.core.server.commands import Command
from rwq_cli.core.server.urls import is_same_database
from rwq_cli.output.export_lines import UndoOrigin

_KEY_S = 90 * 24 * 3600


class ServerMark(NamedTuple):
    """How a server is known; None for what it does not say."""

    run_id: str | None
    server_key: str | None


def mark_server(queue: Queue) -> tuple[ServerMark, int]:
    """Leave our key on the queue's server, if this user may; return how the server is known, and
    its clock, unix ms."""
    key, value = queue.keys.undo(queue.keys.UNDO_SERVER), token_hex(8)
    leave_key = ("SET", key, value, "NX", "EX", _KEY_S), ("EXPIRE", key, _KEY_S)
    was_set, _, *replies, time = queue.connection.call_all(
        [*leave_key, *_mark_commands(queue), ("TIME",)], return_errors=True
    )
    if isinstance(time, ServerError):
        raise time
    mark = _mark_of(*replies) or ServerMark(None, None)
    # During a failover the key may be set only after it was asked for.
    return mark._replace(server_key=value) if was_set is True else mark, unix_ms(time)


def read_mark(queue: Queue) -> ServerMark | None:
    """Return how the queue's server is known; None if this user may not ask."""
    return _mark_of(*queue.connection.call_all(_mark_commands(queue), return_errors=True))


def _mark_commands(queue: Queue) -> tuple[Command, Command]:
    return ("INFO", "server"), ("GET", queue.keys.undo(queue.keys.UNDO_SERVER))


def _mark_of(info: Any, value: Any) -> ServerMark | None:
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
