"""`rwq touch`: renew leases."""

from rwq_cli.cli.choosing import Choice, selects
from rwq_cli.cli.options import DEFAULT_LEASE, LeaseForOption
from rwq_cli.cli.reports import OUTCOME_FIELDS, make_outcome_kind
from rwq_cli.commands import ExitStatus, Settings, command
from rwq_cli.core.items import schedule
from rwq_cli.core.model import State, Status

_LEASED = frozenset(state for state in State if state.is_leased)
_KIND = make_outcome_kind(Status.TOUCHED, (Status.NOT_LEASED, Status.MISSING))


@command(record=OUTCOME_FIELDS, no="none of the items has a live lease")
@selects(frozenset({State.LEASED}), _LEASED, asks=False)
def touch(_: Settings, choice: Choice, lease_s: LeaseForOption = DEFAULT_LEASE) -> ExitStatus:
    """Renew live leases, no matter who holds them. Each then expires after --for.

    rwq touch -q jobs 4f2a9c --for 10m
    rwq touch -q jobs --all --for 1h
    """
    # What is not leased any more has no lease to renew, whatever it was chosen for.
    return choice.act(
        lambda queue, ids, expected, **options: schedule.touch(queue, ids, **options),  # noqa: ARG005
        _KIND,
        lease_s=lease_s,
    )
