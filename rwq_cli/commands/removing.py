"""The undo file and the report of the commands that remove or change items."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rwq_cli.cli.connect import command_lines, naming
from rwq_cli.cli.settings import Settings
from rwq_cli.core.model import Outcome, OutcomeBatch, Outcomes, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.escape import escaped
from rwq_cli.output.export_file import Header, UndoOrigin
from rwq_cli.output.report import Batch
from rwq_cli.undo.file import UndoFile, undo_directory
from rwq_cli.views.outcomes import batch_of_ids

if TYPE_CHECKING:
    from rwq_cli.views.failures import Reason


def open_undo_file(
    settings: Settings,
    queue: WorkQueue,
    verb: str,
    to: bytes | None = None,
    *,
    written_sha256: str | None = None,
) -> UndoFile:
    """The undo file of one run.

    Args:
        settings: The run's settings.
        queue: The queue that the items are removed from.
        verb: The command.
        to: For `mv`, the queue that they are moved to; else None.
        written_sha256: See `UndoOrigin`.
    """
    context = settings.server.context
    name = None if context is None else context.name
    origin = UndoOrigin(verb, queue.connection.address, to, written_sha256, name)
    return UndoFile(
        undo_directory(settings.environment.variables),
        lambda: Header(queue.name, queue.now_ms(), origin),
    )


def removal_report(
    settings: Settings,
    queue: WorkQueue,
    outcomes: Outcomes,
    undo: UndoFile,
    *,
    success: Status,
    failures: Sequence[Status],
    dry_run: bool,
    reasons: "Mapping[Status, Reason] | None" = None,
    fields: Mapping[str, object] | None = None,
    stopped: str = "stopped; items may have been removed",
) -> Batch[Outcome]:
    """The report of a verb that removes or changes items.

    Args:
        settings: The run's settings.
        queue: The queue that they are removed from.
        outcomes: The outcomes; reading them does the work.
        undo: The undo file; it is closed at the end.
        success: The status of an item on which the verb succeeded.
        failures: The statuses of an item on which it failed.
        dry_run: Whether it is a dry run.
        reasons: See `failure_reasons`.
        fields: Further fields of the summary.
        stopped: The note about an undo file for which there is no summary.
    """
    report = batch_of_ids(
        queue,
        outcomes,
        success=success,
        failures=failures,
        dry_run=dry_run,
        naming=naming(settings, queue),
        reasons=reasons,
        fields=fields,
    )
    return with_undo_file(settings, queue, report, undo, stopped=stopped)


def with_undo_file(
    settings: Settings,
    queue: WorkQueue,
    report: Batch[Outcome],
    undo: UndoFile,
    *,
    stopped: str,
    restored: str | None = None,
) -> Batch[Outcome]:
    """The report, at the end of which an undo file is closed, and which names that file.

    Args:
        settings: The run's settings.
        queue: The queue.
        report: The report.
        undo: The undo file.
        stopped: The note about the file if there is no summary.
        restored: What an undo restores, if that is not everything that the summary counts.
    """

    def suffix() -> str:
        if undo.path is None:
            return ""
        them = "it" if undo.items == 1 and not undo.results else "them"
        does = f"puts {them} back" if restored is None else f"puts back {restored}"
        command = "rwq undo"
        if not settings.is_implied:
            command = command_lines(settings, queue.connection).of_queue("undo", queue.name)
        return f"; undo file {escaped(os.fsencode(undo.path))}; {command} {does}"

    def closing_batches() -> Iterator[OutcomeBatch]:
        """The batches; in the end, even after an error, close the undo file and show its name."""
        try:
            yield from report.batches
        except Exception:
            undo.close()
            # There will be no summary.
            if undo.path is not None:
                settings.environment.error(f"{stopped}{suffix()}")
            raise
        finally:
            undo.close()

    def fields() -> dict[str, Any]:
        path = undo.path
        return {**report.fields(), "undo_file": None if path is None else str(path)}

    return replace(report, batches=closing_batches(), suffix=suffix, fields=fields)
