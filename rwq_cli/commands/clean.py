"""`rwq clean light` and `rwq clean deep`: return lost items to the queue."""

from typing import Annotated

from rwq_cli.cli.absence import noting_absence
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.options import A_SECOND, NULL_IDS, DryRunOption, GraceOption, option
from rwq_cli.cli.settings import Settings
from rwq_cli.output.report import Report
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
        "rwq clean light -q jobs --bury-after 3",
    ),
    null=NULL_IDS,
)
def light(
    settings: Settings,
    grace_s: GraceOption = A_SECOND,
    bury_after: BuryAfterOption = None,
    dry_run: DryRunOption = False,
) -> Report:
    queue = open_queue(settings)
    actions = queue.light_clean(grace_s=grace_s, dry_run=dry_run, bury_after=bury_after)
    return clean_report(queue.name, noting_absence(settings, queue, actions), dry_run=dry_run)


@app.command(
    help="Also return orphaned items and drop ghosts; walks all keys. Orphaned items are in no "
    "list, ghosts have no data; surplus entries of an item go, too. Rarely needed.",
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
) -> Report:
    queue = open_queue(settings)
    actions = queue.deep_clean(grace_s=grace_s, dry_run=dry_run, bury_after=bury_after)
    return clean_report(queue.name, noting_absence(settings, queue, actions), dry_run=dry_run)
