"""`rwq kick`: return buried items to the queue."""

from rwq_cli.cli.choosing import Choice, selects
from rwq_cli.cli.options import RateOption
from rwq_cli.cli.reports import OUTCOME_FIELDS, make_outcome_kind
from rwq_cli.commands import ExitStatus, Settings, command
from rwq_cli.core.items import schedule
from rwq_cli.core.model import State, Status

_FAILURES = (Status.NOT_BURIED, Status.MOVING, Status.NOT_OWNER, Status.MISSING)
_KIND = make_outcome_kind(Status.KICKED, _FAILURES)


@command(record=OUTCOME_FIELDS, no="none was kicked: not buried, or gone")
@selects(frozenset({State.BURIED}))
def kick(_: Settings, choice: Choice, rate: RateOption = None) -> ExitStatus:
    """Return buried items to the end of the queue, in the order of the IDs, else the longest
    buried first, and reset their counts of returns.

    rwq kick -q jobs 4f2a9c
    rwq kick -q jobs -n 10
    rwq kick -q jobs --all --rate 50/s
    rwq kick -q jobs --where user=42 --dry-run
    """
    reasons = {Status.NOT_OWNER: "rwq release --force ends its lease"}
    return choice.act(schedule.kick, _KIND, "kick {}", only_many=True, reasons=reasons, rate=rate)
