"""`rwq undo`: restore what a command removed or changed."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.confirm import confirm_action
from rwq_cli.cli.connect import open_connection
from rwq_cli.cli.options import DryRunOption, Duration, option
from rwq_cli.cli.outcomes import outcomes_of
from rwq_cli.cli.settings import Settings
from rwq_cli.commands.restoring import (
    bad_line,
    bad_line_reporter,
    restoring_kind,
    results_restored,
)
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.model import Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.server.same_server import is_same_server
from rwq_cli.environment import os_reason
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output import human
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.field import Fields
from rwq_cli.output.outcomes import Outcomes
from rwq_cli.undo.catalog import UndoEntry, UndoState, delete, open_latest, undo_files
from rwq_cli.undo.file import UndoFileError, undo_directory
from rwq_cli.undo.reader import UndoReader
from rwq_cli.undo.run import UndoRun
from rwq_cli.views.failures import changed_meanwhile
from rwq_cli.views.outcomes import OUTCOME_FIELDS
from rwq_cli.views.undo_files import PRUNED, PRUNED_FIELDS, UNDO_COLUMNS, UNDO_FIELDS

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection

app = CommandModule()

_RESTORED = (Status.IMPORTED, Status.MOVED, Status.SET, Status.REPLACED)
_KIND = restoring_kind(
    ("restored", "already-there", "conflicts", "rejected"),
    dict.fromkeys(_RESTORED, "restored") | {Status.IMPORTED_BEFORE: "restored-before"},
)


def _record(options: Mapping[str, Any]) -> Fields[Any]:
    """The fields of the records that it shows: by default those of the list."""
    if options.get("prune"):
        return PRUNED_FIELDS
    return UNDO_FIELDS if options.get("list_", True) else OUTCOME_FIELDS


@app.command(
    record=_record,
    help="Restore what rm, mv and purge removed, what complete removed if options chose it, and "
    "what edit and import replaced. Uses FILE, else the newest undo file that was not used "
    "yet, or whose undo was interrupted. Items get their former state back, and none is restored "
    "twice, even if undo is interrupted and run again within a day. Waiting items return to the "
    "nearer end of the queue, completed items that somebody held to the front. Moved items, "
    "whatever state they were moved from, wait at the end of the queue. Edited items get their old "
    "data back unless they have changed since.",
    examples=(
        "rwq undo --dry-run",
        "rwq undo",
        "rwq undo -q jobs -o json",
        "rwq undo --list",
        "rwq undo --prune --older-than 30d --dry-run",
    ),
    exits={
        ExitStatus.NO: "nothing was restored: there is no undo file, or every item conflicts; "
        "or declined",
        ExitStatus.PARTIAL: "some items were not restored; to try again, give the name of the "
        "undo file",
    },
    plain={"an undo file (--list)": ", ".join(UNDO_COLUMNS)},
)
def undo(
    settings: Settings,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="The undo file, or its name in --list. Default: the latest of this server and "
            "queue.",
        ),
    ] = None,
    anywhere: Annotated[
        bool,
        option(
            "--anywhere",
            "Allow restoring to a server other than that of the undo file.",
        ),
    ] = False,
    list_: Annotated[
        bool,
        option(
            "--list",
            "List the undo files, latest first; with -q, -u or -c those of that queue or server.",
        ),
    ] = False,
    prune: Annotated[
        bool,
        option(
            "--prune",
            "Delete the undo files older than --older-than; -q, -u and -c work as for --list.",
        ),
    ] = False,
    older_than_s: Annotated[
        Duration | None,
        option(
            "--older-than DUR", "With --list or --prune: only files at least this old.", Duration
        ),
    ] = None,
    yes: Annotated[bool, option("--yes", "Do not ask before --prune deletes files.")] = False,
    dry_run: DryRunOption = False,
) -> ExitStatus:
    if list_ and prune:
        raise InvalidArgument.both("--list", "--prune")
    if not (list_ or prune):
        if older_than_s is not None:
            raise InvalidArgument("--older-than needs --list or --prune", "use one of them")
        return _restore(settings, file, anywhere=anywhere, dry_run=dry_run)
    if file is not None or anywhere:
        name = "a file" if file is not None else "--anywhere"
        raise InvalidArgument(f"{name} cannot be used with --list or --prune", "leave it out")
    if prune and older_than_s is None:
        raise InvalidArgument("--prune needs --older-than", "for example: --older-than 30d")
    entries = _entries(settings, _named_queue(settings), older_than_s or 0.0)
    if prune:
        return _prune(settings, list(entries), yes=yes, dry_run=dry_run)
    directory = os.fsencode(undo_directory(settings.environment.variables))
    empty = f"No such undo files in {escaped(directory)}."
    settings.out.table(entries, UNDO_FIELDS, UNDO_COLUMNS, empty=empty)
    return ExitStatus.OK


def _named_queue(settings: Settings) -> bytes | None:
    """The queue of `-q`; None without that."""
    return settings.queue if settings.given.get("queue") else None


def _restore(settings: Settings, file: Path | None, *, anywhere: bool, dry_run: bool) -> ExitStatus:
    """Undo what a file has; without a file, the latest one."""
    wanted = _named_queue(settings)
    connection = open_connection(settings)
    if file is None and not anywhere and settings.queues:
        # The latest one of this queue, also if RWQ_QUEUE or the context names it.
        wanted = settings.queue
    reader = _open(settings, connection, file, wanted, anywhere=anywhere)
    try:
        _check(reader, connection, wanted, anywhere=anywhere)
    except Exception:
        reader.close()
        raise
    queue = WorkQueue(connection, reader.header.queue, holder=settings.holder)
    report_line = bad_line_reporter(settings, str(reader.path))
    for number, reason in reader.rejected:
        report_line(number, reason)
    run = UndoRun(reader, queue, dry_run=dry_run)
    verb = reader.origin.verb
    # Only what was moved can have a lease.
    destination = queue if reader.origin.to is None else WorkQueue(connection, reader.origin.to)
    out = outcomes_of(
        settings,
        queue,
        _KIND,
        dry_run=dry_run,
        reasons={
            Status.CHANGED: changed_meanwhile,
            Status.CONFLICT: "it exists with other data, and is left as it is",
            Status.MISSING: f"it is not in {escaped(destination.name)} any more",
            Status.NOT_OWNER: "try again when it is free",
        },
        facts={"verb": verb, "undo_file": str(reader.path)},
        suffix=lambda: (
            f"; {verb} of {escaped(queue.name)}, from {_shown(reader.path)}"
            + _rest(run, reader, dry_run=dry_run)
        ),
        leased_in=destination,
    )
    out.rejected = [bad_line(number, reason) for number, reason in reader.rejected]
    out.extra = lambda: {
        "rejected": len(reader.rejected),
        "restored-before": run.restored_before,
        "in-doubt": run.in_doubt,
        **results_restored(run.results),
    }
    with out:
        for batch in run.batches():
            out.rows(batch)
    return out.finish()


def _entries(settings: Settings, wanted: bytes | None, age_s: float) -> Iterator[UndoEntry]:
    """The undo files at least of this age; with -q, -u or -c of this queue or server."""

    def unreadable(path: Path, reason: str) -> None:
        settings.environment.error(f"rwq: cannot read {_shown(path)}: {reason}")

    latest_ms = 1000 * (time() - age_s) if age_s else float("inf")
    directory = undo_directory(settings.environment.variables)
    entries = undo_files(directory, wanted, unreadable)
    if {"url", "context"} & settings.given.keys():
        entries = filter(lambda entry: settings.is_server(entry.server), entries)
    return (entry for entry in entries if entry.time_ms <= latest_ms)


def _prune(settings: Settings, entries: list[UndoEntry], *, yes: bool, dry_run: bool) -> ExitStatus:
    if entries and not (yes or dry_run):
        count = len(entries)
        left = sum(entry.state is not UndoState.RESTORED for entry in entries)
        note = f", {human.count(left)} of them not restored" if left else ""
        size = human.size(sum(entry.file_bytes for entry in entries))
        noun = "undo file" if count == 1 else "undo files"
        confirm_action(settings, f"rwq will delete {human.count(count)} {noun}{note} ({size}).")

    freed = 0
    with Outcomes(
        settings.output_options,
        PRUNED,
        None,
        dry_run=dry_run,
        facts={},
        explain=lambda failed: ("another rwq is writing or restoring it" for _ in failed),
        suffix=lambda: f"; {human.size(freed)}" if freed else "",
    ) as out:
        for entry in entries:
            try:
                is_deleted = delete(entry.path, dry_run=dry_run)
            except OSError as error:
                raise UndoFileError(f"cannot delete {_shown(entry.path)}: {os_reason(error)}")
            freed += entry.file_bytes if is_deleted else 0
            out.row((entry, "deleted" if is_deleted else "in-use"))
    return out.finish()


def _open(
    settings: Settings,
    connection: "Connection",
    file: Path | None,
    wanted: bytes | None,
    *,
    anywhere: bool,
) -> UndoReader:
    directory = undo_directory(settings.environment.variables)
    if file is not None:
        # A name alone is as `--list` shows it.
        is_name = file.name == str(file)
        # `Path.exists` raises for a name that is too long.
        is_listed = is_name and not os.path.exists(file) and os.path.exists(directory / file)
        return UndoReader(directory / file if is_listed else file)

    def skipped(path: Path) -> None:
        settings.environment.note(
            f"rwq: another rwq is writing or restoring {_shown(path)}; skipped"
        )

    return open_latest(
        directory,
        wanted,
        lambda server: anywhere or is_same_server(server, connection.address),
        skipped,
    )


def _check(
    reader: UndoReader, connection: "Connection", wanted: bytes | None, *, anywhere: bool
) -> None:
    """Raise for a file of another queue, or of another server without `--anywhere`."""
    header, origin = reader.header, reader.origin
    if wanted is not None and wanted != header.queue:
        raise InvalidArgument(
            f"the undo file is from the queue {escaped(header.queue)}", "leave out -q"
        )
    if not anywhere and not is_same_server(origin.server, connection.address):
        raise InvalidArgument(
            f"the undo file is from {origin.label}, but this server is {connection.address}",
            "name that server with -u, or use --anywhere",
        )


def _shown(path: Path) -> str:
    return escaped_text(str(path))


def _rest(run: UndoRun, reader: UndoReader, *, dry_run: bool) -> str:
    """The end of the summary."""
    rest = ""
    if run.in_doubt and run.lost_marks:
        rest += (
            "; in doubt: an earlier undo of this file was interrupted, and the server no longer "
            "knows what was restored, so a worker may have completed them"
        )
    elif run.in_doubt:
        rest += (
            f"; in doubt: {reader.origin.verb} was interrupted before it knew whether they were "
            "removed, so a worker may have completed them"
        )
    if not dry_run and not run.is_complete:
        rest += "; to try the rest again, name this file"
    if not dry_run and reader.unrecorded is not None:
        rest += f"; the file could not be updated: {reader.unrecorded}"
    return rest
