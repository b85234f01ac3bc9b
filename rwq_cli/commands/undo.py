"""`rwq undo`: restore what a command removed or changed."""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import inf
from pathlib import Path
from time import time
from typing import Annotated, Any, NamedTuple

from rwq_cli.cli.confirm import confirm_action, is_confirmed, server_shown
from rwq_cli.cli.connect import open_connection
from rwq_cli.cli.elsewhere import OtherQueue, open_elsewhere
from rwq_cli.cli.options import DryRunOption, Duration, YesOption, argument
from rwq_cli.cli.reports import CHANGED_MEANWHILE, OUTCOME_FIELDS, report_of
from rwq_cli.commands import ExitStatus, InvalidArgument, Settings, command, option, undoing
from rwq_cli.commands.undoing import short_path, undo_directory
from rwq_cli.core.model import Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.server.urls import is_same_server
from rwq_cli.environment import has_terminal, os_errors_as
from rwq_cli.output import human
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.export_lines import UndoOrigin, UndoState
from rwq_cli.output.field import Fields
from rwq_cli.output.tally import Tally
from rwq_cli.undo import catalog
from rwq_cli.undo.directory import numbered
from rwq_cli.undo.idle import forget_idle, read_idle
from rwq_cli.undo.journal import UndoFileError
from rwq_cli.undo.run import UndoReader, UndoRun
from rwq_cli.undo.servers import is_from
from rwq_cli.views.undo_files import PRUNED, PRUNED_FIELDS, UNDO_COLUMNS, UNDO_FIELDS

_UNDONE = undoing.restoring_kind(
    *("restored", "already-there", "conflicts", "rejected"),
    **dict.fromkeys(("IMPORTED", "MOVED", "SET", "REPLACED"), "restored"),
    IMPORTED_BEFORE="restored-before",
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
    excludes=["--list --prune --anywhere"],
    needs={"--prune": "--older-than"},
)
def undo(
    settings: Settings,
    file: Annotated[
        str | None,
        argument(
            "[N|FILE]",
            "Its number in --list, or its name. Default: the latest.",
            offer=lambda ctx: _numbers(ctx.find_root().obj.settings),
        ),
    ] = None,
    anywhere: Annotated[
        bool, option("--anywhere", "Also files of other servers, restored to this one.")
    ] = False,
    list_: Annotated[bool, option("--list", "List the files; -q, -u and -c filter them.")] = False,
    prune: Annotated[bool, option("--prune", "Delete those that --older-than chooses.")] = False,
    older_than_s: Annotated[Duration | None, option("--older-than DUR", "Only older ones.")] = None,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> ExitStatus:
    """Restore what rm, mv and purge removed, what complete removed if options chose it or this
    session did not hold it, and what edit and import replaced. Without N or FILE, it takes the
    latest file that was not undone yet, or whose undo was interrupted. Items get their former state
    back, and none is restored twice, even if undo is interrupted and run again within a day.
    Waiting items return to the nearer end of the queue, completed items that somebody held to the
    front; moved items wait at the end of the queue. Edited items get their old data back unless
    they have changed since.

    rwq undo --dry-run
    rwq undo --yes
    rwq undo --list
    rwq undo --yes 12
    rwq undo --prune --older-than 30d --dry-run
    """
    if not (list_ or prune):
        if older_than_s is not None:
            raise InvalidArgument("--older-than needs --list or --prune", "use one of them")
        return _restore(
            settings, _plan(settings, file, anywhere=anywhere, yes=yes, dry_run=dry_run)
        )
    if file is not None:
        raise InvalidArgument("--list and --prune take no file", "leave it out")
    latest_ms = 1000 * (time() - older_than_s) if older_than_s else inf
    is_here = settings.is_server if {"url", "context"} & settings.given.keys() else None
    queue = settings.queue if settings.given.get("queue") else None
    # Of one that cannot be read, nobody knows the queue and the server.
    every = _files(settings, queue, is_here, has_unreadable=queue is None and is_here is None)
    files = (entry for entry in every if entry.time_ms <= latest_ms)
    if prune:
        return _prune(settings, list(files), yes=yes, dry_run=dry_run)
    empty = f"No such undo files in {short_path(settings, undo_directory(settings))}."
    settings.out.table(files, UNDO_FIELDS, UNDO_COLUMNS, empty=empty)
    return ExitStatus.OK


def _numbers(settings: Settings) -> list[str]:
    return [str(entry.number) for entry in _files(settings, None, None, has_unreadable=False)]


class Restoration(NamedTuple):
    """What is to be restored: an open undo file, its queue, and the queue that items are moved back
    from; the same queue if there is none."""

    reader: UndoReader
    queue: WorkQueue
    other: OtherQueue
    dry_run: bool

    @property
    def origin(self) -> UndoOrigin:
        return self.reader.origin

    def done(self) -> str:
        """Say what was done, to what, when and by whom."""
        reader, origin, name = self.reader, self.origin, escaped(self.queue.name)
        items = reader.count()
        place = f"{'in' if reader.changed_data else 'from'} {name}"
        if origin.to is not None:
            place += f" to {self.other.label_to_ask}"
        age_s = max(0.0, (self.queue.now_ms() - reader.header.exported_ms) / 1000)
        age = human.ago(age_s if age_s < 60 else age_s - age_s % 60)
        by = "" if origin.by is None else f", by {escaped_text(origin.by)}"
        return f"{origin.verb} of {human.counted(items, 'item')} {place}, {age}{by}"


def _plan(
    settings: Settings, file: str | None, *, anywhere: bool, yes: bool, dry_run: bool
) -> Restoration:
    """Open the file to restore, and ask the user if that is needed."""
    connection = open_connection(settings, tls_is_elsewhere=True)
    entry, reader = _open(settings, connection.address, file, anywhere=anywhere)
    try:
        header, origin = reader.header, reader.origin
        if settings.given.get("queue") and settings.queue != header.queue:
            raise InvalidArgument(
                f"the undo file is from the queue {escaped(header.queue)}", "leave out -q"
            )
        queue = WorkQueue(connection, header.queue, holder=settings.holder)
        is_here = anywhere or is_from(queue, origin)
        if not (is_here or is_same_server(origin.server, connection.address)):
            raise InvalidArgument(
                f"the undo file is from {origin.label}, but this server is {connection.address}",
                "name that server with -u, or use --anywhere",
            )
        # Only what was moved can have a lease.
        other = _moved_to(settings, queue, origin) if origin.to else OtherQueue(queue)
        plan = Restoration(reader, queue, other, dry_run)
        for number, reason in reader.rejected:
            undoing.bad_line_reporter(settings, str(reader.path))(number, reason)
        # If everything is restored already, there is nothing to ask.
        if not reader.is_done():
            _confirm(other.both(settings), plan, entry, is_here=is_here, yes=yes)
    except BaseException:
        reader.close()
        raise
    return plan


def _confirm(
    settings: Settings,
    plan: Restoration,
    entry: catalog.UndoEntry | None,
    *,
    is_here: bool,
    yes: bool,
) -> None:
    """Return only if the user agrees: also to a server, or to a file, that may not be meant.

    Args:
        entry: The file, if none was named.
    """
    doubts = []
    if not is_here:
        doubts.append(
            "the server at this address is not the one that the file is from, or has lost its data"
        )
        if plan.dry_run or not has_terminal():
            raise InvalidArgument(
                f"{doubts[0]}: {plan.queue.connection.address}",
                "--anywhere restores the items here anyway",
            )
    directory = undo_directory(settings)
    idle = read_idle(directory, plan.queue.connection.address, settings.user_at_host)
    if entry is not None and idle is not None and idle.after >= entry.number:
        doubts.append(
            f"the last command, {idle.verb} of {idle.queue}, {human.ago(time() - idle.time_s)}, "
            "left nothing to undo"
        )
        if yes or plan.dry_run or not has_terminal():
            raise catalog.NothingToUndo(
                doubts[-1], f"rwq undo {entry.number} undoes the one before it: {plan.done()}"
            )
    if plan.dry_run or (is_confirmed(settings, yes=yes) and not doubts):
        return
    question = f"{'; '.join([*doubts, 'undo'])} {plan.done()}? (on {server_shown(settings)})"
    items, name = plan.reader.count(), escaped(plan.queue.name)
    confirm_action(settings, question[0].upper() + question[1:], "", items=items, queue=name)


def _restore(settings: Settings, plan: Restoration) -> ExitStatus:
    """Restore what is planned, and show what became of it."""
    reader, queue, dry_run = plan.reader, plan.queue, plan.dry_run
    moved_from, verb = plan.other.queue, plan.origin.verb
    run = UndoRun(reader, queue, moved_from, dry_run=dry_run)
    with report_of(
        *(settings, queue, _UNDONE),
        dry_run=dry_run,
        reasons={
            Status.CHANGED: CHANGED_MEANWHILE,
            Status.CONFLICT: "it exists with other data, and is left as it is",
            Status.MISSING: f"it is not in {escaped(moved_from.name)} any more",
            Status.NOT_OWNER: "try again when it is free",
        },
        facts={"verb": verb, "undo_file": str(reader.path)},
        suffix=lambda: (
            f"; {verb} of {escaped(queue.name)}, from {short_path(settings, reader.path)}"
            + _rest(run, reader, dry_run=dry_run)
        ),
        leased_in=moved_from,
        rejected=[f"line {number}: {reason}" for number, reason in reader.rejected],
        extra=lambda: {
            "rejected": len(reader.rejected),
            "restored-before": run.restored_before,
            "in-doubt": run.in_doubt,
            **undoing.results_restored(run.results),
        },
    ) as out:
        for batch in run.batches():
            out.rows(batch)
    if not dry_run:
        forget_idle(undo_directory(settings), queue.connection.address, settings.user_at_host)
    return out.finish()


def _moved_to(settings: Settings, queue: WorkQueue, origin: UndoOrigin) -> OtherQueue:
    """Open the queue that items were moved to; a context may hold the password, no file does."""
    context = origin.to_context
    if origin.to_server is not None and context is None:
        protecting = settings.replaced(url=origin.to_server).protecting_context
        context = None if protecting is None else protecting.name
    return open_elsewhere(
        *(settings, queue, origin.to or b"", None if context else origin.to_server, context),
        named_by="the undo file",
    )


def _files(
    settings: Settings,
    queue: bytes | None,
    is_here: Callable[[str], bool] | None,
    *,
    has_unreadable: bool,
) -> Iterator[catalog.UndoEntry]:
    """Yield undo files, the latest first, filtered by queue and server; None for all."""
    for entry in catalog.undo_files(undo_directory(settings)):
        header, origin = entry.header, entry.origin
        if header is None or origin is None:
            if has_unreadable:
                yield entry
        elif queue in (None, header.queue) and (is_here is None or is_here(origin.server)):
            yield entry


def _prune(
    settings: Settings, entries: list[catalog.UndoEntry], *, yes: bool, dry_run: bool
) -> ExitStatus:
    if entries and not (yes or dry_run):
        unrestored = sum(entry.state is not UndoState.RESTORED for entry in entries)
        note = f", {human.count(unrestored)} of them not restored" if unrestored else ""
        size = human.size(sum(entry.file_bytes for entry in entries))
        files = f"{human.count(len(entries))} undo file{'' if len(entries) == 1 else 's'}"
        confirm_action(settings, f"rwq will delete {files}{note} ({size}).")

    freed = 0
    tally = Tally(
        PRUNED,
        None,
        dry_run=dry_run,
        facts={},
        explain=lambda failed: (catalog.IN_USE for _ in failed),
        suffix=lambda: f"; {human.size(freed)}" if freed else "",
    )
    with settings.out.report(tally) as out:
        for entry in entries:
            path = short_path(settings, entry.path)
            with os_errors_as(UndoFileError, f"cannot delete {path}"):
                is_deleted = catalog.delete(entry.path, dry_run=dry_run)
            freed += entry.file_bytes if is_deleted else 0
            out.rows([(entry, "deleted" if is_deleted else "in-use")])
    return out.finish()


def _open(
    settings: Settings, address: str, file: str | None, *, anywhere: bool
) -> tuple[catalog.UndoEntry | None, UndoReader]:
    """Open the file with this number or name; without one, the latest of this server and queue."""
    directory = undo_directory(settings)
    if file is not None:
        if not file:
            raise InvalidArgument("the name of a file is empty", "rwq undo --list names them")
        if file.isascii() and file.isdecimal():
            if (numbered_file := numbered(directory).get(int(file))) is None:
                raise InvalidArgument(f"no undo file has number {file}", "see rwq undo --list")
            return None, UndoReader(numbered_file)
        # A bare name may be a file in the directory. `Path.exists` raises if it is too long.
        path = Path(file)
        is_listed = path.name == file and not os.path.exists(file)
        return None, UndoReader(directory / file if is_listed else path)
    # RWQ_QUEUE or the context may name the queue.
    is_one_queue = settings.given.get("queue") or (settings.queues and not anywhere)
    is_here = None if anywhere else partial(is_same_server, address)
    queue = settings.queue if is_one_queue else None
    entries = _files(settings, queue, is_here, has_unreadable=True)

    def skipped(entry: catalog.UndoEntry, reason: str) -> None:
        name = short_path(settings, entry.path)
        settings.environment.note(f"rwq: {name}: {reason}; skipped")

    return catalog.open_latest(entries, skipped)


def _rest(run: UndoRun, reader: UndoReader, *, dry_run: bool) -> str:
    rest = ""
    if run.now_waiting:
        rest = f"; {human.count(run.now_waiting)} that were delayed or buried wait now"
    if run.in_doubt:
        why = f"{reader.origin.verb} was interrupted before it knew whether they were removed"
        if run.lost_marks:
            why = "an earlier undo was interrupted; the server no longer knows what was restored"
        rest += f"; in doubt: {why}, so a worker may have completed them"
    if not dry_run and not run.is_complete:
        rest += "; to try the rest again, name this file"
    if not dry_run and reader.unrecorded is not None:
        rest += f"; the file could not be updated: {reader.unrecorded}"
    return rest
