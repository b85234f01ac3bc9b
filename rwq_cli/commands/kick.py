"""`rwq kick`: return buried items to the queue."""

from rwq_cli.cli.choosing import Choice, SelectionScope, selects
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import naming, open_queue
from rwq_cli.cli.options import DryRunOption
from rwq_cli.cli.settings import Settings
from rwq_cli.core.items.schedule import kick as kick_items
from rwq_cli.core.model import State, Status
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.report import Report
from rwq_cli.views.outcomes import batch_of_ids

app = CommandModule()

_BURIED = frozenset({State.BURIED})
_SCOPE = SelectionScope(default=_BURIED, everything=_BURIED, offered=_BURIED)


@app.command(
    help="Return buried items to the end of the queue, in the order of the IDs, else the longest "
    "buried first, and reset their counts of returns.",
    examples=(
        "rwq kick -q jobs 4f2a9c",
        "rwq kick -q jobs -n 10",
        "rwq kick -q jobs --where user=42 --dry-run",
    ),
    exits={
        ExitStatus.NO: "none was kicked: not buried, or gone",
        ExitStatus.PARTIAL: "some were not kicked",
    },
)
@selects(_SCOPE)
def kick(settings: Settings, choice: Choice, dry_run: DryRunOption = False) -> Report:
    queue = open_queue(settings)
    chosen = choice.choose(queue, settings)
    return batch_of_ids(
        queue,
        kick_items(queue, chosen.ids, expected=chosen.expected, dry_run=dry_run),
        success=Status.KICKED,
        failures=(Status.NOT_BURIED, Status.NOT_OWNER, Status.MISSING),
        dry_run=dry_run,
        naming=naming(settings, queue),
        reasons={Status.NOT_OWNER: "rwq release --force ends its lease"},
    )
