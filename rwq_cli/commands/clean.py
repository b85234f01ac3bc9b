"""`rwq clean light` and `rwq clean deep`: make lost items available again."""

from collections import Counter
from typing import Annotated

import typer

from rwq_cli.command_line.manual import Manual
from rwq_cli.command_line.tree import HelpfulGroup, new_app
from rwq_cli.commands.batch import DRY_RUN
from rwq_cli.commands.options import NullIdsOption
from rwq_cli.connecting import open_queue
from rwq_cli.core.model import CleanAction
from rwq_cli.reading.durations import parse_duration
from rwq_cli.render.encode import bytes_fields
from rwq_cli.render.report import Batch, Report
from rwq_cli.render.views import clean_view
from rwq_cli.settings import Settings

app = new_app(cls=HelpfulGroup, help="Make available again what dead workers left behind.")

MANUALS = {
    "clean light": Manual(
        examples=(
            "rwq clean light -q jobs",
            "rwq clean light -q jobs --dry-run -o jsonl",
        )
    ),
    "clean deep": Manual(
        examples=(
            "rwq clean deep -q jobs --dry-run",
            "rwq clean deep -q jobs --grace 5s",
        )
    ),
}

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


@app.command(help="Return abandoned items: those in processing without a lease. Quick.")
def light(
    ctx: typer.Context, grace: Grace = "1s", dry_run: DryRun = False, null: NullIdsOption = False
) -> Report:
    return _clean(ctx.obj, grace, deep=False, dry_run=dry_run, null=null)


@app.command(
    help="Walk the whole queue: also return orphans, and drop ghosts and second entries. Rarely "
    "needed."
)
def deep(
    ctx: typer.Context, grace: Grace = "1s", dry_run: DryRun = False, null: NullIdsOption = False
) -> Report:
    return _clean(ctx.obj, grace, deep=True, dry_run=dry_run, null=null)


def _clean(settings: Settings, grace: str, *, deep: bool, dry_run: bool, null: bool) -> Report:
    grace_s = parse_duration(grace)
    queue = open_queue(settings)
    clean = queue.deep_clean if deep else queue.light_clean

    def word(action: CleanAction) -> str:
        return action.action.value

    return Batch(
        view=clean_view(queue.name, dry_run),
        batches=([action] for action in clean(grace_s=grace_s, dry_run=dry_run)),
        count=lambda batch: Counter(map(word, batch)),
        word=word,
        counted=("returned", "dropped", "pruned"),
        failed=frozenset(),
        shown=frozenset({"returned", "dropped", "pruned"}),
        fields={**bytes_fields("queue", queue.name), "dry_run": dry_run},
        prefix=DRY_RUN if dry_run else "",
        null_separated=null,
    )
