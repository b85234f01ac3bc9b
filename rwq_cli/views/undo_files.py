"""Undo files: `rwq undo --list` and `--prune`."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import time

from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import Field, Fields
from rwq_cli.output.report import Batch, Column, Cut, Records, View, view_of
from rwq_cli.undo.catalog import UndoEntry, UndoState

_DELETED, _IN_USE = "deleted", "in-use"
COLUMNS: tuple[Column[UndoEntry], ...] = (
    Column(
        "FILE",
        lambda entry: os.fsencode(entry.path),
        lambda entry: escaped(os.fsencode(entry.path.name)),
        cut=Cut.MIDDLE,
    ),
    Column(
        "WHEN",
        lambda entry: entry.time_ms,
        lambda entry: human.ago(max(0.0, time() - entry.time_ms / 1000)),
        right=True,
        field="time_ms",
        rank=7,
    ),
    Column("VERB", lambda entry: entry.verb, rank=9),
    Column("QUEUE", lambda entry: entry.queue, rank=5, cut=Cut.MIDDLE),
    Column(
        "ITEMS", lambda entry: entry.items, lambda entry: f"{entry.items:,}", right=True, rank=6
    ),
    Column("STATE", lambda entry: entry.state.value, rank=8),
    Column("SERVER", lambda entry: entry.server, rank=3, cut=Cut.MIDDLE),
    Column(
        "SIZE",
        lambda entry: entry.file_bytes,
        lambda entry: human.size(entry.file_bytes),
        right=True,
        field="bytes",
        rank=1,
    ),
)

UNDO_FIELDS: Fields[UndoEntry] = Fields(
    "An undo file",
    Field(
        "file",
        lambda entry: os.fsencode(entry.path),
        "its path",
        format=lambda entry: escaped(os.fsencode(entry.path.name)),
        cut=Cut.MIDDLE,
        is_bytes=True,
        is_id=True,
    ),
    Field(
        "queue",
        lambda entry: entry.queue,
        "the queue's name",
        cut=Cut.MIDDLE,
        rank=5,
        is_bytes=True,
    ),
    Field("server", lambda entry: entry.server, "the server's address", cut=Cut.MIDDLE, rank=3),
    Field("verb", lambda entry: entry.verb, "the command that wrote it", rank=9),
    Field("to", lambda entry: entry.to, "the queue that `mv` moved items to", is_bytes=True),
    Field(
        "time_ms",
        lambda entry: entry.time_ms,
        "when it was written",
        title="WHEN",
        format=lambda entry: human.ago(max(0.0, time() - entry.time_ms / 1000)),
        right=True,
        rank=7,
    ),
    Field(
        "items",
        lambda entry: entry.items,
        "how many items it has",
        format=lambda entry: f"{entry.items:,}",
        right=True,
        rank=6,
    ),
    Field("results", lambda entry: entry.results, "how many results it has", right=True),
    Field(
        "state",
        lambda entry: entry.state.value,
        "`unused`, `restored`, `begun` or `incomplete`",
        rank=8,
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
UNDO_COLUMNS = ("file", "time_ms", "verb", "queue", "items", "state", "server", "bytes")


def _entry(pruned: tuple[UndoEntry, str]) -> UndoEntry:
    return pruned[0]


PRUNED_FIELDS: Fields[tuple[UndoEntry, str]] = Fields(
    "A pruned undo file",
    *(field.within(_entry) for field in UNDO_FIELDS.all),
    Field("status", lambda pruned: pruned[1], "`deleted` or `in-use`"),
)

_SAMPLE = UndoEntry(Path(), b"", "", "", None, 0, 0, 0, UndoState.UNUSED, 0)


def undo_files_report(entries: Iterable[UndoEntry], directory: Path) -> Records[UndoEntry]:
    """The report of `rwq undo --list`."""
    return Records(
        view=view_of(UNDO_FIELDS, _SAMPLE, COLUMNS),
        records=entries,
        empty=lambda: f"No such undo files in {escaped(os.fsencode(directory))}.",
    )


def pruned_report(
    entries: Iterable[UndoEntry], delete: Callable[[UndoEntry], bool], *, dry_run: bool
) -> Batch[tuple[UndoEntry, str]]:
    """The report of `rwq undo --prune`. Reading it deletes the files.

    Args:
        entries: The files.
        delete: Deletes one; returns whether it could.
        dry_run: Whether it is a dry run.
    """
    freed = 0

    def batches() -> Iterator[list[tuple[UndoEntry, str]]]:
        nonlocal freed
        for entry in entries:
            is_deleted = delete(entry)
            freed += entry.file_bytes if is_deleted else 0
            yield [(entry, _DELETED if is_deleted else _IN_USE)]

    report: Batch[tuple[UndoEntry, str]] = Batch(
        view=pruned_view(),
        batches=batches(),
        count=lambda batch: {word: 1 for _, word in batch},
        word=lambda record: record[1],
        counted=(_DELETED, _IN_USE),
        failed=frozenset({_IN_USE}),
        shown=frozenset({_DELETED}),
        fields=lambda: {"dry_run": dry_run},
        dry_run=dry_run,
        suffix=lambda: f"; {human.size(freed)}" if freed else "",
        explain=lambda failures: ("another rwq is writing or restoring it" for _ in failures),
    )
    return report


def pruned_view() -> View[tuple[UndoEntry, str]]:
    """The view of what became of a file."""

    return view_of(PRUNED_FIELDS, (_SAMPLE, _DELETED))
