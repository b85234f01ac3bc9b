"""`rwq touch`: renew leases."""

from rwq_cli.cli.choosing import Choice, SelectionScope, selects
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.options import DEFAULT_LEASE, DryRunOption, LeaseForOption
from rwq_cli.cli.outcomes import outcomes_of
from rwq_cli.cli.settings import Settings
from rwq_cli.core.items.touch import touch as touch_items
from rwq_cli.core.model import State, Status
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.views.outcomes import OUTCOME_FIELDS, kind_of

app = CommandModule()

_LEASED = frozenset(state for state in State if state.is_leased)
_KIND = kind_of(Status.TOUCHED, (Status.NOT_LEASED, Status.MISSING))
_SCOPE = SelectionScope(default=frozenset({State.LEASED}), everything=_LEASED, offered=_LEASED)


@app.command(
    record=OUTCOME_FIELDS,
    help="Renew live leases, no matter who holds them. Each then expires after --for.",
    examples=("rwq touch -q jobs 4f2a9c --for 10m", "rwq touch -q jobs --all --for 1h"),
    exits={
        ExitStatus.NO: "none of the items has a live lease",
        ExitStatus.PARTIAL: "some have no live lease",
    },
)
@selects(_SCOPE)
def touch(
    settings: Settings,
    choice: Choice,
    lease_s: LeaseForOption = DEFAULT_LEASE,
    dry_run: DryRunOption = False,
) -> ExitStatus:
    queue = open_queue(settings)
    with outcomes_of(settings, queue, _KIND, dry_run=dry_run) as out:
        ids = choice.choose(queue, settings).ids
        for batch in touch_items(queue, ids, lease_s=lease_s, dry_run=dry_run).batches:
            out.rows(batch)
    return out.finish()
