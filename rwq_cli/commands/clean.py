"""`rwq clean light` and `rwq clean deep`: return lost items to the queue."""

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated

from rwq_cli.cli.absence import noting_absence
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import naming
from rwq_cli.cli.open_queues import open_matching_queues
from rwq_cli.cli.options import (
    A_SECOND,
    NULL_IDS,
    AllQueuesOption,
    DryRunOption,
    GraceOption,
    option,
)
from rwq_cli.cli.settings import Settings
from rwq_cli.core.model import CleanAction
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.report import Batch, Report
from rwq_cli.views.cleaning import clean_report

app = CommandModule("Return what dead workers left behind.")

BuryAfterOption = Annotated[
    int | None,
    option(
        "--bury-after N",
        "Bury items that cleans returned N times already, instead of returning them again.",
        min=0,
    ),
]


@app.command(
    help="Return abandoned items and promote due ones; fast. Abandoned items are in "
    "processing without a lease; due ones were delayed until now.",
    examples=(
        "rwq clean light -q jobs",
        "rwq clean light -q jobs --dry-run -o jsonl",
        "rwq clean light --all-queues --bury-after 3",
    ),
    null=NULL_IDS,
)
def light(
    settings: Settings,
    grace_s: GraceOption = A_SECOND,
    bury_after: BuryAfterOption = None,
    dry_run: DryRunOption = False,
    all_queues: AllQueuesOption = False,
) -> Report:
    def clean(queue: WorkQueue) -> Iterator[CleanAction]:
        actions = queue.light_clean(grace_s=grace_s, dry_run=dry_run, bury_after=bury_after)
        return noting_absence(settings, queue, actions)

    return _clean_each(settings, clean, all_queues=all_queues, dry_run=dry_run)


@app.command(
    help="Also return orphaned items and drop ghosts; walks all keys. Orphaned items are in no "
    "list, ghosts have no data; surplus entries of an item are removed, too. Rarely needed.",
    examples=(
        "rwq clean deep -q jobs --dry-run",
        "rwq clean deep -q jobs --grace 5s",
        "rwq clean deep -q jobs --bury-after 3",
    ),
    null=NULL_IDS,
)
def deep(
    settings: Settings,
    grace_s: GraceOption = A_SECOND,
    bury_after: BuryAfterOption = None,
    dry_run: DryRunOption = False,
    all_queues: AllQueuesOption = False,
) -> Report:
    def clean(queue: WorkQueue) -> Iterator[CleanAction]:
        actions = queue.deep_clean(grace_s=grace_s, dry_run=dry_run, bury_after=bury_after)
        return noting_absence(settings, queue, actions)

    return _clean_each(settings, clean, all_queues=all_queues, dry_run=dry_run)


def _clean_each(
    settings: Settings,
    clean: Callable[[WorkQueue], Iterable[CleanAction]],
    *,
    all_queues: bool,
    dry_run: bool,
) -> Report:
    opened = open_matching_queues(settings, all_queues=all_queues, changes=True)

    def report(queue: WorkQueue) -> Batch[CleanAction]:
        # The summaries of several queues begin with their names.
        place = naming(settings, queue).place if opened.is_one else str
        actions = opened.reader(settings, clean, queue)
        return clean_report(queue.name, actions, place=place, dry_run=dry_run)

    return opened.reports(report)
