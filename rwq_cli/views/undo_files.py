"""The records of `rwq undo --list` and `--prune`."""

import os
from time import time

from rwq_cli.output import human
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.field import COUNT, NAME, SIZE, Cut, Fields, field
from rwq_cli.output.outcomes import Kind, Row
from rwq_cli.undo.catalog import UndoEntry


def _to(entry: UndoEntry) -> str:
    """The queue that items were moved to, and its server if it is another one."""
    origin = entry.origin
    there = f" on {escaped_text(origin.to_server)}" if origin.to_server else ""
    return f"{escaped(origin.to or b'')}{there}"


_FILE = {"format": lambda entry: entry.path.name, "is_bytes": True, "is_id": True}
_AGE = {"format": lambda undo: human.ago(max(0.0, time() - undo.time_ms / 1000)), "right": True}
UNDO_FIELDS: Fields[UndoEntry] = Fields(
    "An undo file",
    field("number", "number", "its number, by which `rwq undo N` takes it", title="N", right=True),
    field("file", lambda entry: os.fsencode(entry.path), "its path", _FILE, rank=4),
    field("queue", "queue", "the queue's name", NAME, rank=8),
    field("server", "origin.server", "the server's address", rank=2, cut=Cut.MIDDLE),
    field("verb", "origin.verb", "the command that wrote it", rank=10),
    field("by", "origin.by", "who ran it, as user@host", rank=3, cut=Cut.MIDDLE),
    field("to", "origin.to", "the queue that `mv` moved items to", NAME, rank=5, format=_to),
    field(
        "to_server",
        "origin.to_server",
        "the server of that queue, if it is another one",
        cut=Cut.MIDDLE,
    ),
    field("time_ms", "time_ms", "when it was written", _AGE, "WHEN", 9),
    field("items", "items", "how many items it has", COUNT, rank=7),
    field("results", "results", "how many results it has", right=True),
    field("state", "state", "`unused`, `restored`, `begun`, `incomplete` or `redone`", rank=6),
    field("bytes", "file_bytes", "its size", SIZE, "SIZE", rank=1),
)
UNDO_COLUMNS = (
    *("number", "time_ms", "verb", "queue", "to", "items", "state", "by", "file", "server"),
    "bytes",
)

# What became of a file: `deleted`, or `in-use` by another rwq.
Pruned = tuple[UndoEntry, str]

PRUNED_FIELDS: Fields[Row[Pruned]] = Fields(
    "A pruned undo file",
    *(each.within(lambda row: row.what[0]) for each in UNDO_FIELDS.all),
    field("status", lambda row: row.what[1], "`deleted` or `in-use`"),
    is_stream=True,
)
PRUNED: Kind[Pruned] = Kind(
    PRUNED_FIELDS,
    word=lambda pruned: pruned[1],
    item_id=lambda pruned: os.fsencode(pruned[0].path),
    counted=("deleted", "in-use"),
    failed=frozenset({"in-use"}),
    shown=frozenset({"deleted"}),
)
