"""`rwq undo`: restore what a command removed or changed."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from math import inf
from pathlib import Path
from time import time
from typing import Annotated, Any, NamedTuple

from rwq_cli.cli.confirm import confirm_action, describe_server, is_confirmed
from rwq_cli.cli.connect import open_connection
from rwq_cli.cli.elsewhere import OtherQueue, open_elsewhere
from rwq_cli.cli.options import DryRunOption, Duration, YesOption, argument
from rwq_cli.cli.reports import CHANGED_MEANWHILE, OUTCOME_FIELDS, begin_report
from rwq_cli.commands import ExitStatus, InvalidArgument, Settings, command, option, undoing
from rwq_cli.commands.undoing import find_undo_directory, shorten_path
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
from rwq_cli.undo.directory import list_numbered
from rwq_cli.undo.idle import forget_idle, read_idle
from rwq_cli.undo.journal import UndoFileError
from rwq_cli.undo.run import UndoReader, UndoRun
from rwq_cli.undo.servers import is_from
from rwq_cli.views.undo_files import PRUNED, PRUNED_FIELDS, UNDO_COLUMNS, UNDO_FIELDS

_UNDONE = undoing.make_restoring_kind(
    *("restored", "already-there", "conflicts", "rejected"),
    **dict.fromkeys(("IMPORTED", "MOVED", "SET", "REPLACED"), "restored"),
    IMPORTED_BEFORE="restored-before",
)


class UndoOptions(NamedTuple):
    """The options of the command."""

    settings: Settings
    file: Annotated[
        str | None,
        argument(
            "[N|FILE]",
            "Its number in --list, or its name. Default: the latest.",
            offer=lambda ctx: _numbers(ctx.find_root().obj.settings),
        ),
    ] = None
    anywhere: Annotated[
        bool, option("--anywhere", "Also files of other servers, restored to this one.")
    ] = False
    list_: Annotated[bool, option("--list", "List the files; -q, -u and -c filter them.")] = False
    prune: Annotated[bool, option("--prune", "Delete those that --older-than chooses.")] = False
    older_than_s: Annotated[Duration | None, option("--older-than DUR", "Only older ones.")] = None
    yes: YesOption = False
    dry_run: DryRunOption = False


class Plan(NamedTuple):
    """Which undo files are listed or deleted, or which one is restored.

    Attributes:
        path: The file that is restored; None for the latest of those that the rest chooses.
        queue: Only files of this queue; None for all.
        is_here: Returns whether a server is that of the run; None for files of all servers.
        has_unreadable: Also files that cannot be read: nobody knows their queue and server.
        until_ms: Only files that were written until then.
    """

    options: UndoOptions
    path: Path | None = None
    queue: bytes | None = None
    is_here: Callable[[str], bool] | None = None
    has_unreadable: bool = False
    until_ms: float = inf

    def files(self) -> Iterator[catalog.UndoEntry]:
        """Yield the files, the latest first."""
        for entry in catalog.undo_files(find_undo_directory(self.options.settings)):
            if entry.time_ms <= self.until_ms and self._includes(entry):
                yield entry

    def _includes(self, entry: catalog.UndoEntry) -> bool:
        header, origin = entry.header, entry.origin
        if header is None or origin is None:
            return self.has_unreadable
        is_here = self.is_here is None or self.is_here(origin.server)
        return is_here and self.queue in (None, header.queue)

    def open(self) -> tuple[catalog.UndoEntry | None, UndoReader]:
        """Open the file to restore; also returns its entry, unless it was named."""
        if self.path is not None:
            return None, UndoReader(self.path)
        settings = self.options.settings

        def skipped(entry: catalog.UndoEntry, reason: str) -> None:
            name = shorten_path(settings, entry.path)
            settings.environment.note(f"rwq: {name}: {reason}; skipped")

        return catalog.open_latest(self.files(), skipped)


def make_plan(options: UndoOptions) -> Plan:
    """Return what the options ask for; raise for a number that no file has."""
    settings, file, older_than_s = options.settings, options.file, options.older_than_s
    has_queue = bool(settings.common_options.get("queue"))
    if not (options.list_ or options.prune):
        if older_than_s is not None:
            raise InvalidArgument("--older-than needs --list or --prune", "use one of them")
        path = None if file is None else _path_of(find_undo_directory(settings), file)
        # RWQ_QUEUE or the context may name the queue.
        has_queue = has_queue or bool(settings.queues and not options.anywhere)
        queue = settings.queue if has_queue else None
        is_here = None if options.anywhere else settings.is_server
        return Plan(options, path, queue, is_here, has_unreadable=True)
    if file is not None:
        raise InvalidArgument("--list and --prune take no file", "leave it out")
    return Plan(
        options,
        queue=settings.queue if has_queue else None,
        is_here=settings.is_server if {"url", "context"} & settings.common_options.keys() else None,
        has_unreadable=settings.common_options.keys().isdisjoint(("queue", "url", "context")),
        until_ms=1000 * (time() - older_than_s) if older_than_s else inf,
    )


def _path_of(directory: Path, file: str) -> Path:
    """Return the path of the undo file with this number or name."""
    if not file:
        raise InvalidArgument("the name of a file is empty", "rwq undo --list names them")
    if file.isascii() and file.isdecimal():
        if (path := list_numbered(directory).get(int(file))) is None:
            raise InvalidArgument(f"no undo file has number {file}", "see rwq undo --list")
        return path
    # A bare name may be a file in the directory. `Path.exists` raises if it is too long.
    path = Path(file)
    return directory / file if path.name == file and not os.path.exists(file) else path


def _numbers(settings: Settings) -> list[str]:
    return [str(entry.number) for entry in Plan(UndoOptions(settings)).files()]


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
def undo(settings: Settings, options: UndoOptions) -> ExitStatus:
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
    plan = make_plan(options)
    if options.prune:
        return _prune(options, list(plan.files()))
    if not options.list_:
        return _restore(settings, _open(plan))
    empty = f"No such undo files in {shorten_path(settings, find_undo_directory(settings))}."
    settings.out.table(plan.files(), UNDO_FIELDS, UNDO_COLUMNS, empty=empty)
    return ExitStatus.OK


class Restoration(NamedTuple):
    """What is restored: an open undo file, its queue, and the queue that items are moved back
    from; the same queue if there is none."""

    reader: UndoReader
    queue: WorkQueue
    other: OtherQueue
    dry_run: bool

    @property
    def origin(self) -> UndoOrigin:
        return self.reader.origin

    def in_words(self) -> str:
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


def _open(plan: Plan) -> Restoration:
    """Open the file to restore and its queue, and ask the user if that is needed."""
    options, settings = plan.options, plan.options.settings
    connection = open_connection(settings, tls_is_elsewhere=True)
    entry, reader = plan.open()
    with ExitStack() as opened:
        opened.callback(reader.close)
        header, origin = reader.header, reader.origin
        if settings.common_options.get("queue") and settings.queue != header.queue:
            raise InvalidArgument(
                f"the undo file is from the queue {escaped(header.queue)}", "leave out -q"
            )
        queue = WorkQueue(connection, header.queue, holder=settings.holder)
        is_here = options.anywhere or is_from(queue, origin)
        if not (is_here or is_same_server(origin.server, connection.address)):
            raise InvalidArgument(
                f"the undo file is from {origin.label}, but this server is {connection.address}",
                "name that server with -u, or use --anywhere",
            )
        # Only what was moved can have a lease.
        other = _moved_to(settings, queue, origin) if origin.to else OtherQueue(queue)
        restoration = Restoration(reader, queue, other, options.dry_run)
        for number, reason in reader.rejected:
            undoing.make_line_reporter(settings, str(reader.path))(number, reason)
        # If everything is restored already, there is nothing to ask.
        if not reader.is_done():
            both = other.settings_of_both(settings)
            _confirm(both, restoration, entry, is_here=is_here, yes=options.yes)
        opened.pop_all()
    return restoration


def _confirm(
    settings: Settings,
    restoration: Restoration,
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
    queue, dry_run = restoration.queue, restoration.dry_run
    address, can_ask = queue.connection.address, not dry_run and has_terminal()
    if not is_here:
        doubts.append(
            "the server at this address is not the one that the file is from, or has lost its data"
        )
        if not can_ask:
            raise InvalidArgument(
                f"{doubts[0]}: {address}", "--anywhere restores the items here anyway"
            )
    idle = read_idle(find_undo_directory(settings), address, settings.user_at_host)
    if entry is not None and idle is not None and idle.after >= entry.number:
        doubts.append(
            f"the last command, {idle.verb} of {idle.queue}, {human.ago(time() - idle.time_s)}, "
            "left nothing to undo"
        )
        if yes or not can_ask:
            raise catalog.NothingToUndo(
                doubts[-1],
                f"rwq undo {entry.number} undoes the one before it: {restoration.in_words()}",
            )
    if dry_run or (is_confirmed(settings, yes=yes) and not doubts):
        return
    what = f"{'; '.join([*doubts, 'undo'])} {restoration.in_words()}"
    question = f"{what[0].upper()}{what[1:]}? (on {describe_server(settings)})"
    items = restoration.reader.count()
    confirm_action(settings, question, "", items=items, queue=escaped(queue.name))


def _restore(settings: Settings, restoration: Restoration) -> ExitStatus:
    """Restore the items, and show what became of them."""
    reader, queue, other, dry_run = restoration
    moved_from, verb = other.queue, reader.origin.verb
    run = UndoRun(reader, queue, moved_from, dry_run=dry_run)
    with begin_report(
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
            f"; {verb} of {escaped(queue.name)}, from {shorten_path(settings, reader.path)}"
            + _remarks(run, reader, dry_run=dry_run)
        ),
        leased_in=moved_from,
        rejected=[f"line {number}: {reason}" for number, reason in reader.rejected],
        extra=lambda: {
            "rejected": len(reader.rejected),
            "restored-before": run.restored_before,
            "in-doubt": run.in_doubt,
            **undoing.count_restored_results(run.results),
        },
    ) as out:
        for batch in run.batches():
            out.report_batch(batch)
    if not dry_run:
        forget_idle(find_undo_directory(settings), queue.connection.address, settings.user_at_host)
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


def _prune(options: UndoOptions, entries: list[catalog.UndoEntry]) -> ExitStatus:
    settings, dry_run = options.settings, options.dry_run
    if entries and not (options.yes or dry_run):
        unrestored = sum(entry.state is not UndoState.RESTORED for entry in entries)
        note = f", {human.count(unrestored)} of them not restored" if unrestored else ""
        size = human.size(sum(entry.file_bytes for entry in entries))
        files = human.counted(len(entries), "undo file")
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
    with settings.out.begin_tally(tally) as out:
        for entry in entries:
            path = shorten_path(settings, entry.path)
            with os_errors_as(UndoFileError, f"cannot delete {path}"):
                is_deleted = catalog.delete(entry.path, dry_run=dry_run)
            freed += entry.file_bytes if is_deleted else 0
            out.report_batch([(entry, "deleted" if is_deleted else "in-use")])
    return out.finish()


def _remarks(run: UndoRun, reader: UndoReader, *, dry_run: bool) -> str:
    remarks = ""
    if run.now_waiting:
        remarks = f"; {human.count(run.now_waiting)} that were delayed or buried wait now"
    if run.in_doubt:
        why = f"{reader.origin.verb} was interrupted before it knew whether they were removed"
        if run.lost_marks:
            why = "an earlier undo was interrupted; the server no longer knows what was restored"
        remarks += f"; in doubt: {why}, so a worker may have completed them"
    if not dry_run and not run.is_complete:
        remarks += "; to try the rest again, name this file"
    if not dry_run and reader.unrecorded is not None:
        remarks += f"; the file could not be updated: {reader.unrecorded}"
    return remarks
