"""`rwq kick`: return buried items to the queue."""

from rwq_cli.cli.choosing import Choice, selects
from rwq_cli.commands import ExitStatus, Settings, command
from rwq_cli.core.items.schedule import kick as kick_items
from rwq_cli.core.model import State, Status
from rwq_cli.views.outcomes import OUTCOME_FIELDS, kind_of

_KIND = kind_of(Status.KICKED, (Status.NOT_BURIED, Status.MOVING, Status.NOT_OWNER, Status.MISSING))


@command(
    record=OUTCOME_FIELDS,
    help="Return buried items to the end of the queue, in the order of the IDs, else the longest "
    "buried first, and reset their counts of returns.",
    examples=(
        "rwq kick -q jobs 4f2a9c",
        "rwq kick -q jobs -n 10",
        "rwq kick -q jobs --where user=42 --dry-run",
    ),
    no="none was kicked: not buried, or gone",
)
@selects(frozenset({State.BURIED}))
def kick(_: Settings, choice: Choice) -> ExitStatus:
    reasons = {Status.NOT_OWNER: "rwq release --force ends its lease"}
    return choice.act(kick_items, _KIND, "kick {}", only_many=True, reasons=reasons)
