"""Undo files: `rwq undo --list` and `--prune`."""

import os
from time import time

from rwq_cli.output import human
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.field import Cut, Field, Fields
from rwq_cli.output.outcomes import Kind, Row
from rwq_cli.undo.catalog import UndoEntry


def _to(entry: UndoEntry) -> str:
    """The queue that items were moved to, and its server if it is another one."""
    origin = entry.origin
    there = f" on {escaped_text(origin.to_server)}" if origin.to_server else ""
    return f"{escaped(origin.to or b'')}{there}"


UNDO_FIELDS: Fields[UndoEntry] = Fields(
    "An undo file",
    Field(
        "number",
        lambda entry: entry.number,
        "its number, by which `rwq undo N` takes it",
        title="N",
        right=True,
    ),
    Field(
        "file",
        lambda entry: os.fsencode(entry.path),
        "its path",
        format=lambda entry: entry.path.name,
        rank=4,
        is_bytes=True,
        is_id=True,
    ),
    Field(
        "queue",
        lambda entry: entry.queue,
        "the queue's name",
        cut=Cut.MIDDLE,
        rank=8,
        is_bytes=True,
    ),
    Field(
        "server", lambda entry: entry.origin.server, "the server's address", cut=Cut.MIDDLE, rank=2
    ),
    Field("verb", lambda entry: entry.origin.verb, "the command that wrote it", rank=10),
    Field("by", lambda entry: entry.origin.by, "who ran it, as user@host", cut=Cut.MIDDLE, rank=3),
    Field(
        "to",
        lambda entry: entry.origin.to,
        "the queue that `mv` moved items to",
        format=_to,
        cut=Cut.MIDDLE,
        rank=5,
        is_bytes=True,
    ),
    Field(
        "to_server",
        lambda entry: entry.origin.to_server,
        "the server of that queue, if it is another one",
        cut=Cut.MIDDLE,
    ),
    Field(
        "time_ms",
        lambda entry: entry.time_ms,
        "when it was written",
        title="WHEN",
        format=lambda entry: human.ago(max(0.0, time() - entry.time_ms / 1000)),
        right=True,
        rank=9,
    ),
    Field(
        "items",
        lambda entry: entry.items,
        "how many items it has",
        format=lambda entry: f"{entry.items:,}",
        right=True,
        rank=7,
    ),
    Field("results", lambda entry: entry.results, "how many results it has", right=True),
    Field(
        "state",
        lambda entry: entry.state.value,
        "`unused`, `restored`, `begun`, `incomplete` or `redone`",
        rank=6,
    ),
    Field(
        "bytes",
        lambda entry: entry.file_bytes,
        "its size",
        title="SIZE",
        format=lambda entry: human.size(entry.file_bytes),
        right=True,
        rank=1,
    ),
)
UNDO_COLUMNS = (
    *("number", "time_ms", "verb", "queue", "to", "items", "state", "by", "file", "server"),
    "bytes",
)


# What became of a file: `deleted`, or `in-use` by another rwq.
Pruned = tuple[UndoEntry, str]


def _entry(row: Row[Pruned]) -> UndoEntry:
    return row.what[0]


PRUNED_FIELDS: Fields[Row[Pruned]] = Fields(
    "A pruned undo file",
    *(field.within(_entry) for field in UNDO_FIELDS.all),
    Field("status", lambda row: row.what[1], "`deleted` or `in-use`"),
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
