"""`rwq mv`: move items to another queue."""

import os
from typing import Annotated

from rwq_cli.cli.choosing import Choice, SelectionScope, selects
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.options import DryRunOption, YesOption, offer_queues, option
from rwq_cli.cli.settings import Settings
from rwq_cli.commands.undoing import Undo
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.choosing import Chosen
from rwq_cli.core.inspect.queues import exists
from rwq_cli.core.inspect.selection import ITEMS
from rwq_cli.core.items.journal import NoJournal
from rwq_cli.core.items.move import move
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.model import Status
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import bytes_fields
from rwq_cli.views.outcomes import OUTCOME_FIELDS, kind_of

app = CommandModule()


# --force also chooses leased, delayed and buried items.
_CHOSEN = frozenset(state for state in ITEMS if not (state.is_leased or state.is_scheduled))
_SCOPE = SelectionScope(default=_CHOSEN, everything=_CHOSEN, offered=ITEMS)
_KIND = kind_of(Status.MOVED, (Status.NOT_OWNER, Status.CONFLICT, Status.MISSING))


@app.command(
    record=OUTCOME_FIELDS,
    destructive=True,
    help="Move items to the end of another queue on the same server. Each is in exactly"
    " one of the two at every instant, except between two slots of a cluster, where it is buried"
    " in both for a moment. Without --state and --force, the options choose items that are neither"
    " leased nor delayed nor buried.",
    examples=(
        "rwq mv -q jobs --to slow-jobs --where 'kind~^video/' --yes",
        "rwq mv -q jobs --to jobs-2 --all --dry-run",
        "rwq ls -q jobs --id-glob 'a*' -o ids | rwq mv -q jobs --to jobs-a --yes -",
    ),
    exits={
        ExitStatus.NO: "none was moved: gone, leased, already there, or declined",
        ExitStatus.PARTIAL: "some were not moved",
    },
)
@selects(_SCOPE)
def mv(
    settings: Settings,
    choice: Choice,
    to: Annotated[
        bytes, option("--to QUEUE", "The queue to move them to.", os.fsencode, offer=offer_queues)
    ],
    force: Annotated[
        bool, option("--force", "Also leased, delayed and buried items; their leases end.")
    ] = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> ExitStatus:
    QueueKeys(to)
    if to == settings.queue:
        raise InvalidArgument("--to names the queue that the items are in", "name another one")
    queue = open_queue(settings)
    # Only the question and a dry run say so.
    is_new = (dry_run or not yes) and not exists(queue.sibling(to))
    question = f"move {{}} to {escaped(to)}{', a new or empty queue,' if is_new else ''}"
    choice = choice.including(ITEMS) if force else choice

    def movable(chosen: Chosen) -> list[bytes]:
        ids, expected = chosen.ids, chosen.expected
        outcomes = move(queue, ids, to, NoJournal(), force=force, expected=expected, dry_run=True)
        return [each.item_id for each in outcomes if each.status is Status.MOVED]

    undo = Undo(settings, queue, "mv", to=to)
    new = ", a new or empty queue" if dry_run and is_new else ""
    with undo.outcomes(
        _KIND,
        dry_run=dry_run,
        reasons={
            Status.NOT_OWNER: "--force moves it anyway",
            Status.CONFLICT: f"{escaped(to)} has an item or a lease with this ID; complete or "
            "move one of the two first",
        },
        facts=bytes_fields("to", to),
        suffix=lambda: f" to {escaped(to)}{new}",
    ) as out:
        chosen = choice.choose(
            queue, settings, confirm=None if dry_run else question, yes=yes, affected=movable
        )
        for batch in move(
            queue, chosen.ids, to, undo, force=force, expected=chosen.expected, dry_run=dry_run
        ).batches:
            out.rows(batch)
    return out.finish(undo_file=undo.name)
