"""`rwq touch`: renew leases."""

from typing import Annotated

import typer

from rwq_cli.cli.choosing import Choice, SelectionScope
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.options import DryRunOption
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.model import State, Status
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.input.durations import parse_duration
from rwq_cli.output.report import Report
from rwq_cli.views.outcomes import batch_of_ids

app = CommandModule()

_LEASED = frozenset({State.LEASED, State.HELD, State.UNLISTED})
_SCOPE = SelectionScope(default=frozenset({State.LEASED}), everything=_LEASED, offered=_LEASED)


@app.command(
    help="Give live leases a new expiry, counted from now.",
    examples=(
        "rwq touch -q jobs 4f2a9c --for 10m",
        "rwq touch -q jobs --all --for 1h",
    ),
    exits={
        ExitStatus.NO: "none has a live lease",
        ExitStatus.PARTIAL: "some have no live lease",
    },
)
def touch(
    settings: Settings,
    choice: Annotated[Choice, _SCOPE],
    lease_for: Annotated[
        str, typer.Option("--for", metavar="DUR", help="How long the lease lasts from now.")
    ] = "5m",
    dry_run: DryRunOption = False,
) -> Report:
    lease_s = parse_duration(lease_for)
    if lease_s < 0.001:
        raise InvalidArgument("a lease must last at least 1ms", "release the item instead")
    queue = open_queue(settings)
    return batch_of_ids(
        queue.name,
        queue.touch(choice.ids(queue, settings), lease_s=lease_s, dry_run=dry_run),
        done=Status.TOUCHED,
        failures=(Status.NOT_LEASED, Status.MISSING),
        dry_run=dry_run,
        null_separated=choice.null_separated,
    )
