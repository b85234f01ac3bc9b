"""`rwq kick`: return buried items to the queue."""

from rwq_cli.cli.choosing import Choice, SelectionScope, selects
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.options import DryRunOption, YesOption
from rwq_cli.cli.outcomes import outcomes_of
from rwq_cli.cli.settings import Settings
from rwq_cli.core.inspect.choosing import Chosen
from rwq_cli.core.items.schedule import kick as kick_items
from rwq_cli.core.model import Outcomes, State, Status
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.views.outcomes import OUTCOME_FIELDS, kind_of

app = CommandModule()

_BURIED = frozenset({State.BURIED})
_SCOPE = SelectionScope(default=_BURIED, everything=_BURIED, offered=_BURIED)
_KIND = kind_of(Status.KICKED, (Status.NOT_BURIED, Status.MOVING, Status.NOT_OWNER, Status.MISSING))


@app.command(
    record=OUTCOME_FIELDS,
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
def kick(
    settings: Settings, choice: Choice, yes: YesOption = False, dry_run: DryRunOption = False
) -> ExitStatus:
    queue = open_queue(settings)

    def act(chosen: Chosen, *, dry_run: bool) -> Outcomes:
        return kick_items(queue, chosen.ids, expected=chosen.expected, dry_run=dry_run)

    with outcomes_of(
        settings,
        queue,
        _KIND,
        dry_run=dry_run,
        reasons={Status.NOT_OWNER: "rwq release --force ends its lease"},
    ) as out:
        question = None if dry_run else "kick {}"
        chosen = choice.choose(queue, settings, confirm=question, yes=yes, only_many=True, act=act)
        for batch in act(chosen, dry_run=dry_run).batches:
            out.rows(batch)
    return out.finish()
