"""`rwq clean light` and `rwq clean deep`: make lost items available again."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.options import NullIdsOption
from rwq_cli.cli.settings import Settings
from rwq_cli.core.model import CleanAction, Repair
from rwq_cli.input.durations import parse_duration
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.report import Batch, Report
from rwq_cli.views.outcomes import DRY_RUN
from rwq_cli.views.records import clean_view

app = CommandModule("Make available again what dead workers left behind.")


Grace = Annotated[
    str,
    typer.Option(
        "--grace",
        metavar="DUR",
        help="How long an item must look broken; longer than any worker takes from its pop to "
        "its lease.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Look twice and report, but change nothing.")
]
BuryAfter = Annotated[
    int | None,
    typer.Option(
        "--bury-after",
        metavar="N",
        min=0,
        help="Bury what cleans brought back N times already, instead of returning it once more.",
    ),
]
# What a clean can do to an ID, in the order of the summary.
_REPAIRS = tuple(repair.value for repair in Repair)


@app.command(
    help="Return abandoned items, those in processing without a lease, and put delayed items into "
    "the queue that are due. Quick.",
    examples=(
        "rwq clean light -q jobs",
        "rwq clean light -q jobs --dry-run -o jsonl",
        "rwq clean light -q jobs --bury-after 3",
    ),
)
def light(
    settings: Settings,
    grace: Grace = "1s",
    bury_after: BuryAfter = None,
    dry_run: DryRun = False,
    null: NullIdsOption = False,
) -> Report:
    grace_s, queue = parse_duration(grace), open_queue(settings)
    actions = queue.light_clean(grace_s=grace_s, dry_run=dry_run, bury_after=bury_after)
    return _report(queue.name, actions, dry_run=dry_run, null=null)


@app.command(
    help="Walk the whole queue: also return orphans, and drop ghosts and second entries. Rarely "
    "needed.",
    examples=(
        "rwq clean deep -q jobs --dry-run",
        "rwq clean deep -q jobs --grace 5s",
        "rwq clean deep -q jobs --bury-after 3",
    ),
)
def deep(
    settings: Settings,
    grace: Grace = "1s",
    bury_after: BuryAfter = None,
    dry_run: DryRun = False,
    null: NullIdsOption = False,
) -> Report:
    grace_s, queue = parse_duration(grace), open_queue(settings)
    actions = queue.deep_clean(grace_s=grace_s, dry_run=dry_run, bury_after=bury_after)
    return _report(queue.name, actions, dry_run=dry_run, null=null)


def _report(name: bytes, actions: Iterator[CleanAction], *, dry_run: bool, null: bool) -> Report:

    def word(action: CleanAction) -> str:
        return action.action.value

    return Batch(
        view=clean_view(name, dry_run),
        batches=([action] for action in actions),
        count=lambda batch: Counter(map(word, batch)),
        word=word,
        counted=_REPAIRS,
        failed=frozenset(),
        shown=frozenset(_REPAIRS),
        fields={**bytes_fields("queue", name), "dry_run": dry_run},
        prefix=DRY_RUN if dry_run else "",
        null_separated=null,
    )
