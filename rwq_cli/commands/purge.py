"""`rwq purge`: remove a whole queue."""

from rwq_cli.cli.confirm import confirm, is_confirmed
from rwq_cli.cli.connect import open_queue, warn_missing
from rwq_cli.cli.options import DryRunOption, YesOption
from rwq_cli.cli.reports import OUTCOME_FIELDS, make_outcome_kind
from rwq_cli.commands import ExitStatus, Settings, command, escaped
from rwq_cli.commands.undoing import Undo
from rwq_cli.core.items.purge import PurgedResults, count_items, purge as purge_queue
from rwq_cli.core.model import Status

_KIND = make_outcome_kind(Status.REMOVED, ())._replace(successes=frozenset({"results"}))


@command(
    record=OUTCOME_FIELDS,
    destructive=True,
    ok="done, even if the queue is empty",
    no="nothing was removed: declined",
    partial="some items were left: they changed, are being moved here, or a key has the wrong type",
)
def purge(settings: Settings, yes: YesOption = False, dry_run: DryRunOption = False) -> ExitStatus:
    """Remove a queue with all its keys. Items and results are written to an undo file first. Items
    that are added once the queue has been read are kept, and so are unrelated keys with names like
    those of results.

    rwq purge -q jobs --dry-run
    rwq purge -q jobs --yes
    """
    queue = open_queue(settings)
    undo = Undo(settings, queue, "purge")
    purged = PurgedResults()
    extra = lambda: {"results": purged.results}  # noqa: E731
    with undo.report(_KIND, dry_run=dry_run, extra=extra) as out:
        if not dry_run and not is_confirmed(settings, yes=yes):
            items = count_items(queue)
            counts = queue.counts() if items else None
            leased = (counts.leased or 0) + (counts.held or 0) if counts is not None else 0
            queue.connection.progress.hide()
            confirm(settings, "remove all {}", items, escaped(queue.name), leased=leased)
        out.report_all(purge_queue(queue, undo, results=purged, dry_run=dry_run))
    if not (out.tally.has_work or purged.others or purged.is_denied):
        warn_missing(settings, queue)
    if purged.is_denied:
        settings.environment.note("rwq: this user may not access results; they are kept")
    elif purged.others:
        settings.environment.note(
            f"rwq: kept {purged.others:,} keys of other programs, with names like those of results"
        )
    return out.finish(undo_file=undo.name)
