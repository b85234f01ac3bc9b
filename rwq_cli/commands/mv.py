"""`rwq mv`: move items to another queue, of this server or another one."""

import os
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain, count
from math import inf
from typing import Annotated, NamedTuple

from rwq_cli.cli.choosing import Choice, selects
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.elsewhere import OtherQueue, ToContextOption, ToUrlOption, open_elsewhere
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


class MoveOptions(NamedTuple):
    """Where items are moved, and which: the options of the command."""

    settings: Settings
    to: Annotated[bytes, option("--to QUEUE", "The other queue.", os.fsencode, offer_queues)]
    to_url: ToUrlOption = None
    to_context: ToContextOption = None
    force: Annotated[bool, option("--force", "Also what is leased, delayed or buried.")] = False
    follow: Annotated[bool, option("--follow", "Also what arrives later, until stopped.")] = False
    rate: RateOption = None


@command(
    record=OUTCOME_FIELDS,
    destructive=True,
    writes_elsewhere=True,
    no="none was moved: gone, leased, already there, or declined",
    excludes=["--to-url --to-context"],
)
@selects(_CHOSEN, offered=ITEMS)
def mv(settings: Settings, choice: Choice, options: MoveOptions) -> ExitStatus:
    """Move items to the end of another queue. Each is in one of the two at every instant. The same
    command resumes an interrupted move. Without --state and --force, options choose no leased,
    delayed or buried items.

    rwq mv -q jobs --to slow-jobs --where 'kind~^video/' --yes
    rwq mv -q jobs --to jobs-2 --all --dry-run
    rwq mv -q jobs --to jobs --to-context new --all --follow --yes
    rwq mv -q jobs-a --to jobs --all --rate 50/s --yes
    rwq ls -q jobs --id-glob 'a*' -o ids | rwq mv -q jobs --to jobs-a --yes -
    """
    if options.follow and (choice.by_name or choice.dry_run):
        other = "--dry-run" if choice.dry_run else "IDs"
        raise InvalidArgument(f"--follow cannot be used with {other}", "choose items by options")
    queue = open_queue(settings)
    target = open_elsewhere(settings, queue, options.to, options.to_url, options.to_context)
    choice = choice.including(ITEMS) if options.force else choice
    return _Move(options, choice, queue, target).run()


class _Move:
    """One move of the chosen items, and with `--follow` of those that come later."""

    def __init__(
        self, options: MoveOptions, choice: Choice, queue: WorkQueue, target: OtherQueue
    ) -> None:
        self._options, self._choice = options, choice
        self._queue, self._target = queue, target
        self._transfer = Transfer(queue, target.queue, force=options.force)
        is_elsewhere = target.settings is not None
        self._undo = Undo(
            *(options.settings, queue, "mv"),
            to=options.to,
            to_server=target.queue.connection.address if is_elsewhere else None,
            to_context=options.to_context if is_elsewhere else None,
        )

    def run(self) -> ExitStatus:
        dry_run, follow = self._choice.dry_run, self._options.follow
        # Only the question and a dry run say so.
        is_named = dry_run or not self._choice.yes
        new = ", a new or empty queue" if is_named and not exists(self._target.queue) else ""
        conflict = "has an item or a lease with this ID; complete or move one of the two first"
        with (
            ending_on_terminate(within_s=_ARRIVAL_S) if follow else nullcontext(),
            self._undo.report(
                _KIND,
                dry_run=dry_run,
                reasons={
                    Status.NOT_OWNER: "--force moves it anyway",
                    Status.CONFLICT: f"{self._target.label} {conflict}",
                },
                facts=bytes_fields("to", self._options.to),
                suffix=lambda: f" to {self._target.label}{new if dry_run else ''}",
            ) as out,
        ):
            # Items that could not be moved are not tried again.
            unmovable: set[bytes] = set()
            pace = Pace(inf if dry_run else self._options.rate or inf)
            for items in chain([self._choose(new)], self._later() if follow else ()):
                ids = (item_id for item_id in items.ids if item_id not in unmovable)
                items = items._replace(ids=pace.slow(ids))
                for batch in self._move(items, dry_run=dry_run).batches:
                    out.report_batch(batch)
                    if follow:
                        unmovable.update(o.item_id for o in batch if o.status not in _MOVED)
        return out.finish(undo_file=self._undo.name)

    def _choose(self, new: str) -> Chosen:
        """Return the items once the user agrees, and copy the history of a whole queue."""
        choice, target = self._choice, self._target
        asking = choice._replace(settings=target.settings_of_both(self._options.settings))
        comma = "," if new and target.settings is None else ""
        question = f"move {{}} to {target.label_to_ask}{new}{comma}"
        items = asking.choose(self._queue, question, act=self._move)
        if choice.is_whole_queue and not choice.dry_run:
            copy_history(self._queue, target.queue)
        return items

    def _move(self, items: Chosen, *, dry_run: bool) -> Outcomes:
        return move(
            *(self._queue, items.ids, self._target.queue, None if dry_run else self._undo),
            force=self._options.force,
            expected=items.expected,
            transfer=self._transfer,
            dry_run=dry_run,
        )

    def _later(self) -> Iterator[Chosen]:
        """Yield what the options choose later, again and again."""
        queue, selection = self._queue, self._choice.selection
        states = ITEMS if selection.states is None else selection.states
        # Items in the other states are only found by a walk over all keys of the server.
        quick = states - FOUND_DEEP or states
        for number in count(1):
            queue.progress.hide()
            queue.clock.sleep(_FOLLOW_EVERY_S)
            wanted = quick if number % _WALK_EACH else states
            yield choose(queue, selection._replace(states=wanted), limit=self._choice.limit)
