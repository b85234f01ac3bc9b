"""`rwq mv`: move items to another queue, of this server or another one."""

import os
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain, count
from math import inf
from typing import Annotated

from rwq_cli.cli.choosing import Choice, selects
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.elsewhere import ToContextOption, ToUrlOption, open_elsewhere
from rwq_cli.cli.interrupts import ending_on_terminate
from rwq_cli.cli.options import RateOption, offer_queues
from rwq_cli.cli.reports import OUTCOME_FIELDS, make_outcome_kind
from rwq_cli.commands import ExitStatus, InvalidArgument, Settings, command, option
from rwq_cli.commands.undoing import Undo
from rwq_cli.core.inspect.history import copy_history
from rwq_cli.core.inspect.listing import Chosen, choose
from rwq_cli.core.inspect.queues import exists
from rwq_cli.core.inspect.selection import FOUND_DEEP, ITEMS
from rwq_cli.core.items.move import move
from rwq_cli.core.items.transfer import Transfer
from rwq_cli.core.model import Outcomes, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.input.streams import Pace
from rwq_cli.output.field import bytes_fields

# --force also chooses leased, delayed and buried items.
_CHOSEN = frozenset(state for state in ITEMS if not (state.is_leased or state.is_scheduled))
_MOVED = (Status.MOVED, Status.FINISHED)
_KIND = make_outcome_kind(Status.MOVED, (Status.NOT_OWNER, Status.CONFLICT, Status.MISSING))
_KIND = _KIND._replace(printed=frozenset(map(str, _MOVED)))
_FOLLOW_EVERY_S = 1.0
_WALK_EACH = 60
# After SIGTERM, what is on its way to another server has this long to arrive.
_ARRIVAL_S = 5.0


@command(
    record=OUTCOME_FIELDS,
    destructive=True,
    writes_elsewhere=True,
    no="none was moved: gone, leased, already there, or declined",
    excludes=["--to-url --to-context"],
)
@selects(_CHOSEN, offered=ITEMS)
def mv(
    settings: Settings,
    choice: Choice,
    to: Annotated[bytes, option("--to QUEUE", "The other queue.", os.fsencode, offer=offer_queues)],
    to_url: ToUrlOption = None,
    to_context: ToContextOption = None,
    force: Annotated[bool, option("--force", "Also what is leased, delayed or buried.")] = False,
    follow: Annotated[bool, option("--follow", "Also what arrives later, until stopped.")] = False,
    rate: RateOption = None,
) -> ExitStatus:
    """Move items to the end of another queue. Each is in one of the two at every instant. The same
    command resumes an interrupted move. Without --state and --force, options choose no leased,
    delayed or buried items.

    rwq mv -q jobs --to slow-jobs --where 'kind~^video/' --yes
    rwq mv -q jobs --to jobs-2 --all --dry-run
    rwq mv -q jobs --to jobs --to-context new --all --follow --yes
    rwq mv -q jobs-a --to jobs --all --rate 50/s --yes
    rwq ls -q jobs --id-glob 'a*' -o ids | rwq mv -q jobs --to jobs-a --yes -
    """
    dry_run = choice.dry_run
    if follow and (choice.by_name or dry_run):
        other = "--dry-run" if dry_run else "IDs"
        raise InvalidArgument(f"--follow cannot be used with {other}", "choose items by options")
    queue = open_queue(settings)
    opened = open_elsewhere(settings, queue, to, to_url, to_context)
    target, label, is_elsewhere = opened.queue, opened.label, opened.settings is not None
    # Only the question and a dry run say so.
    new = ", a new or empty queue" if (dry_run or not choice.yes) and not exists(target) else ""
    to_shown = f"{opened.label_to_ask}{new}{',' if new and not is_elsewhere else ''}"
    choice = choice.including(ITEMS) if force else choice

    transfer = Transfer(queue, target, force=force)

    def act(items: Chosen, *, dry_run: bool) -> Outcomes:
        journal = None if dry_run else undo
        return move(
            *(queue, items.ids, target, journal),
            force=force,
            expected=items.expected,
            transfer=transfer,
            dry_run=dry_run,
        )

    server, context = (target.connection.address, to_context) if is_elsewhere else (None, None)
    undo = Undo(settings, queue, "mv", to=to, to_server=server, to_context=context)
    with (
        ending_on_terminate(within_s=_ARRIVAL_S) if follow else nullcontext(),
        undo.report(
            _KIND,
            dry_run=dry_run,
            reasons={
                Status.NOT_OWNER: "--force moves it anyway",
                Status.CONFLICT: f"{label} has an item or a lease with this ID; complete or "
                "move one of the two first",
            },
            facts=bytes_fields("to", to),
            suffix=lambda: f" to {label}{new if dry_run else ''}",
        ) as out,
    ):
        asking = choice._replace(settings=opened.settings_of_both(settings))
        first = asking.choose(queue, f"move {{}} to {to_shown}", act=act)
        if choice.is_whole_queue and not dry_run:
            copy_history(queue, target)
        later = _later(queue, choice) if follow else iter(())
        # Items that could not be moved are not tried again.
        unmovable: set[bytes] = set()
        pace = Pace(inf if dry_run else rate or inf)
        for items in chain([first], later):
            ids = (item_id for item_id in items.ids if item_id not in unmovable)
            items = items._replace(ids=pace.slow(ids))
            for batch in act(items, dry_run=dry_run).batches:
                out.report_batch(batch)
                if follow:
                    unmovable.update(o.item_id for o in batch if o.status not in _MOVED)
    return out.finish(undo_file=undo.name)


def _later(queue: WorkQueue, choice: Choice) -> Iterator[Chosen]:
    """Yield what the options choose later, again and again."""
    states = ITEMS if choice.selection.states is None else choice.selection.states
    # Items in the other states are only found by a walk over all keys of the server.
    quick = states - FOUND_DEEP or states
    for number in count(1):
        queue.progress.hide()
        queue.clock.sleep(_FOLLOW_EVERY_S)
        wanted = quick if number % _WALK_EACH else states
        yield choose(queue, choice.selection._replace(states=wanted), limit=choice.limit)
