"""`rwq bury`: set items aside."""

import os
from typing import Annotated

from rwq_cli.cli.choosing import Choice, selects
from rwq_cli.cli.options import ForceOption
from rwq_cli.cli.reports import OUTCOME_FIELDS, make_outcome_kind
from rwq_cli.commands import ExitStatus, Settings, command, option
from rwq_cli.core.inspect.selection import ITEMS
from rwq_cli.core.items import schedule
from rwq_cli.core.model import State, Status

# --force also chooses leased items.
_LEASED = frozenset(state for state in State if state.is_leased)
_FAILURES = (Status.MOVING, Status.NOT_OWNER, Status.MISSING)
_KIND = make_outcome_kind(
    Status.BURIED, _FAILURES, neutral=(Status.ALREADY_BURIED, Status.REASON_REPLACED)
)


@command(record=OUTCOME_FIELDS, no="none was buried: gone, or leased by another session")
@selects(frozenset({State.WAITING, State.ABANDONED}), offered=ITEMS, has_reason=True)
def bury(
    _: Settings,
    choice: Choice,
    reason: Annotated[
        bytes | None,
        option(
            "--reason TEXT",
            f"The reason, up to {schedule.REASON_BYTES_MAX:,} bytes; replaces the reason of items "
            f"that are already buried.  [default: {schedule.NO_REASON.decode()}]",
            os.fsencode,
        ),
    ] = None,
    force: ForceOption = False,
) -> ExitStatus:
    """Bury items with a reason: workers and cleaners leave them alone until they are kicked.
    Without --state, the options choose waiting and abandoned items, and with --force also leased
    ones.

    rwq bury -q jobs 4f2a9c --reason 'crashes the parser'
    rwq bury -q jobs --match '"version": *1\\b' --reason 'old format' --dry-run
    rwq ls -q jobs --older-than 7d -n 0 -o ids | rwq bury -q jobs --reason stale -
    """
    return (choice.including(_LEASED) if force else choice).act(
        schedule.bury,
        _KIND,
        "bury {} and end the leases of other sessions" if force else "bury {}",
        only_many=not force,
        reasons={Status.NOT_OWNER: "--force ends its lease"},
        reason=reason,
        force=force,
    )
