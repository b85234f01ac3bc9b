"""`rwq undo`: restore what a command removed or changed."""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import inf
from pathlib import Path
from time import time
from typing import Annotated, Any

from rwq_cli.cli.confirm import confirm_action, is_confirmed, server_shown
from rwq_cli.cli.connect import open_connection
from rwq_cli.cli.elsewhere import OtherQueue, open_elsewhere
from rwq_cli.cli.options import DryRunOption, Duration, YesOption, argument
from rwq_cli.cli.outcomes import CHANGED_MEANWHILE, OUTCOME_FIELDS
from rwq_cli.commands import ExitStatus, InvalidArgument, Settings, command, option, undoing
from rwq_cli.commands.undoing import Undo, short_path
from rwq_cli.core.model import Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.server.urls import is_same_server
from rwq_cli.environment import os_errors_as
from rwq_cli.output import human
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.export_file import UndoOrigin
from rwq_cli.output.field import COUNT, NAME, SIZE, Cut, Fields, field
from rwq_cli.output.outcomes import Kind, Outcomes, Row
from rwq_cli.undo import catalog
from rwq_cli.undo.file import UndoFileError, numbered, undo_directory
from rwq_cli.undo.run import UndoReader, UndoRun, remove_again


def _to(entry: catalog.UndoEntry) -> str:
    """Return the queue that items were moved to, and its server if it is another one."""
    origin = entry.origin
    there = f" on {escaped_text(origin.to_server)}" if origin.to_server else ""
    return f"{escaped(origin.to or b'')}{there}"


_FILE = {"format": lambda entry: entry.path.name, "is_bytes": True, "is_id": True}
_AGE = {"format": lambda undo: human.ago(max(0.0, time() - undo.time_ms / 1000)), "right": True}
UNDO_FIELDS: Fields[catalog.UndoEntry] = Fields(
    "An undo file",
    field("number", "number", "its number, as in `rwq undo N`", title="N", right=True),
    field("file", lambda entry: os.fsencode(entry.path), "its path", _FILE, rank=4),
    field("queue", "queue", "the queue's name", NAME, rank=8),
    field("server", "origin.server", "the server's address", rank=2, cut=Cut.MIDDLE),
    field("verb", "origin.verb", "the command that wrote it", rank=10),
    field("by", "origin.by", "who ran it, as user@host", rank=3, cut=Cut.MIDDLE),
    field("to", "origin.to", "the queue that `mv` moved items to", NAME, rank=5, format=_to),
    field("to_server", "origin.to_server", "its server, if it is another one", cut=Cut.MIDDLE),
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
Pruned = tuple[catalog.UndoEntry, str]

PRUNED_FIELDS: Fields[Row[Pruned]] = Fields(
    "A pruned undo file",
    *(each.within(lambda row: row.what[0]) for each in UNDO_FIELDS.all),
    field("status", lambda row: row.what[1], "`deleted` or `in-use`"),
    is_stream=True,
    has_summary=True,
)
PRUNED: Kind[Pruned] = Kind(
    PRUNED_FIELDS,
    word=lambda pruned: pruned[1],
    item_id=lambda pruned: os.fsencode(pruned[0].path),
    counted=("deleted", "in-use"),
    failed=frozenset({"in-use"}),
    shown=frozenset({"deleted"}),
)

_UNDONE = undoing.restoring_kind(
    *("restored", "already-there", "conflicts", "rejected"),
    **dict.fromkeys(("IMPORTED", "MOVED", "SET", "REPLACED"), "restored"),
    IMPORTED_BEFORE="restored-before",
)
_REDONE = undoing.restoring_kind(
    *("redone", "conflicts", "rejected"),
    **dict.fromkeys(("REMOVED", "MOVED", "FINISHED", "SET", "REPLACED", "IMPORTED"), "redone"),
)


def _record(options: Mapping[str, Any]) -> Fields[Any]:
    if options.get("prune"):
        return PRUNED_FIELDS
    return UNDO_FIELDS if options.get("list_", True) else OUTCOME_FIELDS


@command(
    record=_record,
    destructive=True,
    writes_elsewhere=True,
    no="nothing was restored: declined, no undo file, or every item conflicts",
    partial="some items were not restored; to try again, give the number of the undo file",
    plain={"an undo file (--list)": ", ".join(UNDO_COLUMNS)},
)
def undo(
    settings: Settings,
    file: Annotated[
        str | None, argument("[N|FILE]", "Its number in --list, or its name. Default: the latest.")
    ] = None,
    redo: Annotated[bool, option("--redo", "Undo the last undo, except for results.")] = False,
    anywhere: Annotated[bool, option("--anywhere", "Also take files of other servers.")] = False,
    list_: Annotated[bool, option("--list", "List the files; -q, -u and -c filter them.")] = False,
    prune: Annotated[bool, option("--prune", "Delete those that --older-than chooses.")] = False,
    older_than_s: Annotated[Duration | None, option("--older-than DUR", "Only older ones.")] = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> ExitStatus:
    """Restore what rm, mv and purge removed, what complete removed if options chose it, and what
    edit and import replaced. Without N or FILE, it takes the latest file that was not undone yet,
    or whose undo was interrupted. Items get their former state back, and none is restored twice,
    even if undo is interrupted and run again within a day. Waiting items return to the nearer end
    of the queue, completed items that somebody held to the front; moved items wait at the end of
    the queue. Edited items get their old data back unless they have changed since.

    rwq undo --dry-run
    rwq undo --yes
    rwq undo --list
    rwq undo --yes 12
    rwq undo --redo --dry-run
    rwq undo --prune --older-than 30d --dry-run
    """
    if list_ and prune:
        raise InvalidArgument.both("--list", "--prune")
    if not (list_ or prune):
        if older_than_s is not None:
            raise InvalidArgument("--older-than needs --list or --prune", "use one of them")
        return _restore(settings, file, redo=redo, anywhere=anywhere, yes=yes, dry_run=dry_run)
    for given, name in ((file, "a file"), (anywhere, "--anywhere"), (redo, "--redo")):
        if given:
            raise InvalidArgument(f"{name} cannot be used with --list or --prune", "leave it out")
    if prune and older_than_s is None:
        raise InvalidArgument("--prune needs --older-than", "for example: --older-than 30d")
    latest_ms = 1000 * (time() - older_than_s) if older_than_s else inf
    is_here = settings.is_server if {"url", "context"} & settings.given.keys() else None
    found = _files(settings, settings.queue if settings.given.get("queue") else None, is_here)
    entries = (entry for entry in found if entry.time_ms <= latest_ms)
    if prune:
        return _prune(settings, list(entries), yes=yes, dry_run=dry_run)
    directory = short_path(settings, undo_directory(settings.environment.variables))
    empty = f"No such undo files in {directory}."
    settings.out.table(entries, UNDO_FIELDS, UNDO_COLUMNS, empty=empty)
    return ExitStatus.OK


def _restore(
    settings: Settings, file: str | None, *, redo: bool, anywhere: bool, yes: bool, dry_run: bool
) -> ExitStatus:
    """Undo what a file records, or undo its undo; without a file, take the latest."""
    connection = open_connection(settings)
    reader = _open(settings, connection.address, file, redo=redo, anywhere=anywhere)
    try:
        origin, verb, header = reader.origin, reader.origin.verb, reader.header
        if settings.given.get("queue") and settings.queue != header.queue:
            raise InvalidArgument(
                f"the undo file is from the queue {escaped(header.queue)}", "leave out -q"
            )
        if not anywhere and not is_same_server(origin.server, connection.address):
            raise InvalidArgument(
                f"the undo file is from {origin.label}, but this server is {connection.address}",
                "name that server with -u, or use --anywhere",
            )
        if redo and verb == "import":
            raise InvalidArgument("the last undo was of an import", "run the import again")
        queue = WorkQueue(connection, header.queue, holder=settings.holder)
        # Only what was moved can have a lease.
        other = _moved_to(settings, queue, origin) if origin.to else OtherQueue(queue)
        for number, reason in reader.rejected:
            undoing.bad_line_reporter(settings, str(reader.path))(number, reason)
        # If everything is restored already, there is nothing to ask.
        has_work = redo or not reader.is_done()
        both = other.both(settings)
        if has_work and not (dry_run or is_confirmed(both, yes=yes)):
            _ask(both, reader, queue, other, redo=redo)
    except BaseException:
        reader.close()
        raise
    path = None if redo else catalog.redo_file(reader.path)
    journal = Undo(settings, queue, verb, path=path, to=origin.to)
    source = UndoReader(catalog.redo_file(reader.path)) if redo and reader.changed_data else reader
    run = UndoRun(source, queue, other.queue, journal, dry_run=dry_run)
    batches = run.batches()
    if redo and source is reader:
        batches = remove_again(reader, queue, other.queue, journal, dry_run=dry_run)
    holding = queue if redo else other.queue
    with journal.outcomes(
        _REDONE if redo else _UNDONE,
        dry_run=dry_run,
        reasons={
            Status.CHANGED: CHANGED_MEANWHILE,
            Status.CONFLICT: "it exists with other data, and is left as it is",
            Status.MISSING: f"it is not in {escaped(holding.name)} any more",
            Status.NOT_OWNER: "try again when it is free",
        },
        facts={"verb": verb, "undo_file": str(reader.path)},
        suffix=lambda: (
            f"; {verb} of {escaped(queue.name)}, from {short_path(settings, reader.path)}"
            + _rest(run, reader, dry_run=dry_run or redo)
        ),
        leased_in=holding,
    ) as out:
        out.rejected = [f"line {number}: {reason}" for number, reason in reader.rejected]
        out.extra = lambda: {
            "rejected": len(reader.rejected),
            "restored-before": 0 if redo else run.restored_before,
            "in-doubt": run.in_doubt,
            **undoing.results_restored(run.results),
        }
        for batch in batches:
            out.rows(batch)
        if redo and not dry_run:
            reader.record_redone(queue.now_ms())
    reader.close()
    return out.finish()


def _moved_to(settings: Settings, queue: WorkQueue, origin: UndoOrigin) -> OtherQueue:
    """Open the queue that items were moved to; a context may hold the password, no file does."""
    context = origin.to_context
    if origin.to_server is not None and context is None:
        there = settings.replaced(url=origin.to_server).protecting_context
        context = None if there is None else there.name
    return open_elsewhere(
        *(settings, queue, origin.to or b"", None if context else origin.to_server, context),
        named_by="the undo file",
    )


def _ask(
    settings: Settings, reader: UndoReader, queue: WorkQueue, other: OtherQueue, *, redo: bool
) -> None:
    """Ask, naming what was done, where, when and by whom; return only if it may be undone."""
    origin, name = reader.origin, escaped(queue.name)
    items = reader.count(restored=redo)
    if redo and reader.changed_data:
        items = max(items, 1)
    noun = "item" if items == 1 else "items"
    place = f"{'in' if reader.changed_data else 'from'} {name}"
    if origin.to is not None:
        place += f" to {other.label_to_ask}"
    age_s = max(0.0, (queue.now_ms() - reader.header.exported_ms) / 1000)
    age = human.ago(age_s if age_s < 60 else age_s - age_s % 60)
    by = "" if origin.by is None else f", by {escaped_text(origin.by)}"
    done = f"{origin.verb} of {human.count(items)} {noun} {place}, {age}{by}"
    question = f"{'Redo' if redo else 'Undo'} {done}? On {server_shown(settings)}."
    confirm_action(settings, question, items=items, queue=name)


def _files(
    settings: Settings, queue: bytes | None, is_here: Callable[[str], bool] | None
) -> Iterator[catalog.UndoEntry]:
    """Yield the undo files, latest first, of a queue and of servers that are here; None for all."""

    def unreadable(path: Path, reason: str) -> None:
        settings.environment.error(f"rwq: cannot read {short_path(settings, path)}: {reason}")

    directory = undo_directory(settings.environment.variables)
    for entry in catalog.undo_files(directory, unreadable):
        if queue in (None, entry.queue) and (is_here is None or is_here(entry.origin.server)):
            yield entry


def _prune(
    settings: Settings, entries: list[catalog.UndoEntry], *, yes: bool, dry_run: bool
) -> ExitStatus:
    if entries and not (yes or dry_run):
        done = (catalog.UndoState.RESTORED, catalog.UndoState.REDONE)
        left = sum(entry.state not in done for entry in entries)
        note = f", {human.count(left)} of them not restored" if left else ""
        size = human.size(sum(entry.file_bytes for entry in entries))
        files = f"{human.count(len(entries))} undo file{'' if len(entries) == 1 else 's'}"
        confirm_action(settings, f"rwq will delete {files}{note} ({size}).")

    freed = 0
    with Outcomes(
        settings,
        PRUNED,
        None,
        dry_run=dry_run,
        facts={},
        explain=lambda failed: ("another rwq is writing or restoring it" for _ in failed),
        suffix=lambda: f"; {human.size(freed)}" if freed else "",
    ) as out:
        for entry in entries:
            path = short_path(settings, entry.path)
            with os_errors_as(UndoFileError, f"cannot delete {path}"):
                is_deleted = catalog.delete(entry.path, dry_run=dry_run)
            freed += entry.file_bytes if is_deleted else 0
            out.row((entry, "deleted" if is_deleted else "in-use"))
    return out.finish()


def _open(
    settings: Settings, address: str, file: str | None, *, redo: bool, anywhere: bool
) -> UndoReader:
    """Open the file with this number or name; without one, the latest of this server and queue."""
    directory = undo_directory(settings.environment.variables)
    if file is not None:
        if not file:
            raise InvalidArgument("the name of a file is empty", "rwq undo --list names them")
        if file.isascii() and file.isdecimal():
            if (known := numbered(directory).get(int(file))) is None:
                raise InvalidArgument(f"no undo file has number {file}", "see rwq undo --list")
            return UndoReader(known)
        # A bare name may be a file in the directory. `Path.exists` raises if it is too long.
        path = Path(file)
        is_listed = path.name == file and not os.path.exists(file)
        return UndoReader(directory / file if is_listed else path)
    # RWQ_QUEUE or the context may name the queue.
    is_one_queue = settings.given.get("queue") or (settings.queues and not anywhere)
    is_here = None if anywhere else partial(is_same_server, address)
    entries = _files(settings, settings.queue if is_one_queue else None, is_here)

    def skipped(path: Path) -> None:
        shown = short_path(settings, path)
        settings.environment.note(f"rwq: another rwq is writing or restoring {shown}; skipped")

    return catalog.open_undone(entries) if redo else catalog.open_latest(entries, skipped)


def _rest(run: UndoRun, reader: UndoReader, *, dry_run: bool) -> str:
    rest = ""
    if run.in_doubt:
        why = f"{reader.origin.verb} was interrupted before it knew whether they were removed"
        if run.lost_marks:
            why = (
                "an earlier undo of this file was interrupted, and the server no longer knows what "
                "was restored"
            )
        rest = f"; in doubt: {why}, so a worker may have completed them"
    if not dry_run and not run.is_complete:
        rest += "; to try the rest again, name this file"
    if not dry_run and reader.unrecorded is not None:
        rest += f"; the file could not be updated: {reader.unrecorded}"
    return rest
