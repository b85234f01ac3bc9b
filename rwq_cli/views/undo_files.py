"""Undo files: `rwq undo --list` and `--prune`."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import time
from typing import Any

from rwq_cli.output import human
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Batch, Column, Cut, Records, View
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

_SAMPLE = UndoEntry(Path(), b"", "", "", None, 0, 0, 0, UndoState.UNUSED, 0)


def undo_files_report(entries: Iterable[UndoEntry], directory: Path) -> Records[UndoEntry]:
    """The report of `rwq undo --list`."""
    return Records(
        view=View(_fields, lambda entry: os.fsencode(entry.path), _SAMPLE, COLUMNS),
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

    def fields(record: tuple[UndoEntry, str]) -> dict[str, Any]:
        return {**_fields(record[0]), "status": record[1]}

    return View(fields, lambda record: os.fsencode(record[0].path), (_SAMPLE, _DELETED))


def _fields(entry: UndoEntry) -> dict[str, Any]:
    return {
        **bytes_fields("file", os.fsencode(entry.path)),
        **bytes_fields("queue", entry.queue),
        "server": entry.server,
        "verb": entry.verb,
        **bytes_fields("to", entry.to),
        "time_ms": entry.time_ms,
        "items": entry.items,
        "results": entry.results,
        "state": entry.state.value,
        "bytes": entry.file_bytes,
    }
