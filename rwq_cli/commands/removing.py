"""What the commands that take items away have in common: the undo file, and the report."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rwq_cli.cli.settings import Settings
from rwq_cli.core.model import Outcome, OutcomeBatch, Outcomes, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.escape import escaped
from rwq_cli.output.export_file import Header, Taken
from rwq_cli.output.report import Batch
from rwq_cli.undo.file import UndoFile, undo_directory
from rwq_cli.views.outcomes import DRY_RUN, outcome_view


def open_undo_file(
    settings: Settings, queue: WorkQueue, verb: str, to: bytes | None = None
) -> UndoFile:
    """The undo file of one run.

    Args:
        settings: The run's settings.
        queue: Where the items are taken from.
        verb: The command.
        to: For `mv`, where they go; else None.
    """
    taken = Taken(verb, queue.connection.name, to)
    return UndoFile(
        undo_directory(settings.environment.variables),
        lambda: Header(queue.name, queue.now_ms(), taken),
    )


def batch_of_taken(
    settings: Settings,
    queue: WorkQueue,
    outcomes: Outcomes,
    undo: UndoFile,
    *,
    done: Status,
    failures: Sequence[Status],
    dry_run: bool,
    null_separated: bool,
    fields: Mapping[str, object] | None = None,
) -> Batch[Outcome]:
    """The report of a verb that takes items away.

    Args:
        settings: The run's settings.
        queue: Where they are taken from.
        outcomes: What becomes of each ID; reading them does the work.
        undo: Where they are written down.
        done: The status that the verb is for.
        failures: The statuses that mean no.
        dry_run: Whether nothing is changed.
        null_separated: Whether `-o ids` ends each ID with NUL.
        fields: Further fields of the summary.
    """
    summary: dict[str, object] = {
        **bytes_fields("queue", queue.name),
        **(fields or {}),
        "dry_run": dry_run,
        "undo_file": None,
    }

    def where() -> str:
        return "" if undo.path is None else f"; undo file {escaped(os.fsencode(undo.path))}"

    def say_where() -> None:
        if undo.path is not None:
            settings.environment.note(f"what was taken away until then{where()}")

    return Batch(
        view=outcome_view(queue.name),
        batches=_closing(outcomes.batches, undo, summary, say_where),
        count=lambda batch: {status.value: n for status, n in batch.counts().items()},
        word=lambda outcome: outcome.status.value,
        counted=(done.value, *(status.value for status in failures)),
        failed=frozenset(status.value for status in (*failures, *_ALWAYS_FAILURES)),
        shown=frozenset({done.value}),
        fields=summary,
        prefix=DRY_RUN if dry_run else "",
        suffix=where,
        null_separated=null_separated,
    )


_ALWAYS_FAILURES = (Status.CHANGED, Status.WRONG_TYPE)


def _closing(
    batches: Iterable[OutcomeBatch],
    undo: UndoFile,
    summary: dict[str, object],
    say_where: Callable[[], None],
) -> Iterator[OutcomeBatch]:
    """The batches; however they end, the undo file is closed, and its name is told."""
    try:
        yield from batches
        undo.confirm()
    except Exception:
        # There will be no summary.
        undo.close()
        say_where()
        raise
    finally:
        undo.close()
        if undo.path is not None:
            summary["undo_file"] = str(undo.path)
