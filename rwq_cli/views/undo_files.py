"""Undo files as `rwq undo --list` shows them, and what became of those that are pruned."""

import os
from time import time

from rwq_cli.output import human
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.field import COUNT, NAME, SIZE, Cut, Fields, field
from rwq_cli.output.tally import OutcomeKind, OutcomeRecord
from rwq_cli.undo.catalog import UndoEntry


def _to(entry: UndoEntry) -> str:
    """Return the queue that items were moved to, and its server if it is another one."""
    origin = entry.origin
    if origin is None or origin.to is None:
        return ""
    server = f" on {escaped_text(origin.to_server)}" if origin.to_server else ""
    return f"{escaped(origin.to)}{server}"


_FILE = {"format": lambda entry: entry.path.name, "is_bytes": True, "is_id": True}
_AGE = {"format": lambda undo: human.ago(max(0.0, time() - undo.time_ms / 1000)), "right": True}
UNDO_FIELDS: Fields[UndoEntry] = Fields(
    "An undo file",
    field("number", "number", "its number, as in `rwq undo N`", title="N", right=True),
    field("file", lambda entry: os.fsencode(entry.path), "its path", _FILE, rank=4),
    field("queue", "header.queue", "the queue's name", NAME, rank=8),
    field("server", "origin.server", "the server's address", rank=2, cut=Cut.MIDDLE),
    field("verb", "origin.verb", "the command that wrote it", rank=10),
    field("by", "origin.by", "who ran it, as user@host", rank=3, cut=Cut.MIDDLE),
    field("to", "origin.to", "the queue that `mv` moved items to", NAME, rank=5, format=_to),
    field("to_server", "origin.to_server", "its server, if it is another one", cut=Cut.MIDDLE),
    field("time_ms", "time_ms", "when it was written, by this machine's clock", _AGE, "WHEN", 9),
    field("items", "items", "how many items it has; null if its writer was killed", COUNT, rank=7),
    field("results", "results", "how many results it has; null as for items", right=True),
    field("state", "state", "`unused`, `restored`, `begun`, `incomplete` or `unreadable`", rank=6),
    field("reason", "reason", "why it cannot be read", rank=3),
    field("bytes", "file_bytes", "its size", SIZE, "SIZE", rank=1),
)
UNDO_COLUMNS = (
    *("number", "time_ms", "verb", "queue", "to", "items", "state", "by", "file", "server"),
    *("bytes", "reason"),
)

# What became of a file: `deleted`, or `in-use` by another rwq.
Pruned = tuple[UndoEntry, str]

PRUNED_FIELDS: Fields[OutcomeRecord[Pruned]] = Fields(
    "A pruned undo file",
    *(field_of_file.within(lambda row: row.outcome[0]) for field_of_file in UNDO_FIELDS.all),
    field("status", lambda row: row.outcome[1], "`deleted` or `in-use`"),
    is_stream=True,
    has_summary=True,
)
PRUNED: OutcomeKind[Pruned] = OutcomeKind(
    PRUNED_FIELDS,
    word=lambda pruned: pruned[1],
    item_id=lambda pruned: os.fsencode(pruned[0].path),
    counted=("deleted", "in-use"),
    failed=frozenset({"in-use"}),
    printed=frozenset({"deleted"}),
)
