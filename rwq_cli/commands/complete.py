"""`rwq complete`: finish items."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, NamedTuple

from rwq_cli.cli.choosing import Choice, selects
from rwq_cli.cli.confirm import MANY, is_confirmed, must_ask
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.options import ForceOption, offer_holders, result_duration
from rwq_cli.cli.reports import OUTCOME_FIELDS, SHOW, Reasons, begin_report, make_outcome_kind
from rwq_cli.commands import Duration, ExitStatus, InvalidArgument, Settings, command, option
from rwq_cli.core.batches import BLOCK_IDS, in_batches
from rwq_cli.core.clock import RESULT_TTL_S
from rwq_cli.core.inspect.listing import Chosen
from rwq_cli.core.inspect.results import ResultStatus
from rwq_cli.core.inspect.selection import ITEMS
from rwq_cli.core.items.complete import NOBODY, ResultOptions, complete as complete_items
from rwq_cli.core.model import Lease, Outcome, OutcomeBatch, Outcomes, State, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.state.rules import is_guard
from rwq_cli.input.streams import read_payload
from rwq_cli.output import human
from rwq_cli.output.records import Output
from rwq_cli.views.command_lines import shell_word

if TYPE_CHECKING:
    from rwq_cli.commands.undoing import Undo

_TTL = human.duration(RESULT_TTL_S)
_KIND = make_outcome_kind(Status.COMPLETED, (Status.MISSING, Status.NOT_OWNER))
_QUESTION = "complete {} that this session does not hold"


class Completion(NamedTuple):
    """What is completed: first what the owners hold, then all else, unless only that is wanted.

    Attributes:
        only_own: Items that none of the owners holds are left alone.
        force: Items that other sessions hold are completed, too.
        result: The result to keep for each item.
    """

    choice: Choice
    owners: Sequence[bytes]
    only_own: bool = False
    force: bool = False
    result: ResultOptions | None = None

    def is_other(self, outcome: Outcome) -> bool:
        """Return True if an item that no owner holds is to be completed as a removal."""
        if outcome.status is not Status.NOT_OWNER or self.only_own:
            return False
        holder = outcome.holder
        return self.force or holder is None or is_guard(Lease(holder, None))


@command(
    record=OUTCOME_FIELDS,
    destructive=True,
    no="none was completed by this call: gone, or leased by another session",
    excludes=["--owner --mine", "--force --mine", "--force --owner"],
)
@selects(frozenset({State.WAITING}), ITEMS, mine=True)
def complete(
    settings: Settings,
    choice: Choice,
    owner: Annotated[
        str | None,
        option("--owner SESSION", "Only what this session or holder holds.", offer=offer_holders),
    ] = None,
    force: ForceOption = False,
    result: Annotated[
        str | None, option("--result FILE", "Store this file as its result; - is stdin.")
    ] = None,
    rejected: Annotated[
        bool, option("--rejected", "Store it as rejected: the item was given up.")
    ] = False,
    result_ttl_s: Annotated[
        Duration | None,
        option("--result-ttl DUR", f"Keep it for this long.  [default: {_TTL}]", result_duration),
    ] = None,
) -> ExitStatus:
    """Complete items: remove them as done. What another session holds needs --force; what nobody
    holds gets an undo file. --result and --rejected store a result. Options choose waiting items,
    unless --state or --all is given.

    rwq complete -q jobs 4f2a9c
    rwq complete -q jobs --state leased --match '"user": *42' --dry-run
    rwq lease -q jobs -n 1000 -o ids | rwq complete -q jobs -
    rwq complete -q jobs 4f2a9c --mine
    rwq complete -q jobs 4f2a9c --result answer.json --result-ttl 1d
    echo 'no such user' | rwq complete -q jobs 4f2a9c --rejected --result -
    """
    if result == "-" and choice.from_stdin:
        raise InvalidArgument(
            "stdin cannot hold both the IDs and the result", "put one of them in a file"
        )
    kept = None
    if result is not None or result_ttl_s is not None or rejected:
        data = None if result is None else read_payload(settings.environment, result, "result")
        status = ResultStatus.REJECTED if rejected else ResultStatus.COMPLETED
        kept = ResultOptions(data, status, RESULT_TTL_S if result_ttl_s is None else result_ttl_s)
    owners = [settings.holder]
    if owner is not None:
        owners = [os.fsencode(owner), settings.holder_of(owner)]
    only_own = choice.mine or owner is not None
    return _run(settings, Completion(choice, owners, only_own, force, kept))


class CompletionRun(ExitStack):
    """Completes what the owners hold as the IDs come; then the rest, with an undo file."""

    def __init__(self, settings: Settings, queue: WorkQueue, plan: Completion) -> None:
        super().__init__()
        self._settings, self._queue, self._plan = settings, queue, plan
        self.undo: Undo | None = None

    def run(self, out: Output, *, asks: bool) -> None:
        """Complete the items; with `asks`, the rest once the user has agreed."""
        choice = self._plan.choice
        items, others = choice.read(self._queue), list[bytes]()
        for block in in_batches(items.ids, items_max=BLOCK_IDS):
            held = self._complete(items._replace(ids=block), is_own=True, dry_run=choice.dry_run)
            for batch in held.batches:
                if batch.count(Status.NOT_OWNER):
                    removals = set(filter(self._plan.is_other, batch))
                    others += [outcome.item_id for outcome in batch if outcome in removals]
                    batch = OutcomeBatch.of(outcome for outcome in batch if outcome not in removals)
                out.report_batch(batch)
            if others and not asks:
                out.report_all(self._complete(items._replace(ids=others), dry_run=choice.dry_run))
                others.clear()
        if others:
            items, act = items._replace(ids=others), self._complete
            items = choice.confirmed(self._queue, items, _QUESTION, only_many=True, act=act)
            out.report_all(self._complete(items, dry_run=False))

    def _complete(self, items: Chosen, *, is_own: bool = False, dry_run: bool) -> Outcomes:
        """Complete what the owners hold; else, saving it first, what nobody may be holding."""
        plan = self._plan
        others = () if plan.force else (*plan.owners, NOBODY)
        is_saved = not (dry_run or (is_own and plan.choice.by_name))
        return complete_items(
            self._queue,
            items.ids,
            owner=plan.owners if is_own else others,
            result_options=plan.result,
            expected=items.expected,
            journal=self._journal() if is_saved else None,
            dry_run=dry_run,
        )

    def _journal(self) -> "Undo":
        if self.undo is None:
            # Scripts complete their own items one by one, and need not wait for this import.
            from rwq_cli.commands.undoing import Undo

            self.undo = self.enter_context(Undo(self._settings, self._queue, "complete"))
        return self.undo

    def summary_end(self) -> str:
        return "" if self.undo is None else self.undo.summary_end()


def _run(settings: Settings, plan: Completion) -> ExitStatus:
    queue, dry_run = open_queue(settings), plan.choice.dry_run
    # Before anything is done, because --yes may be refused.
    may_ask = not (dry_run or is_confirmed(settings, yes=plan.choice.yes))
    queue.check_one_slot()
    run, reasons = CompletionRun(settings, queue, plan), _reasons(settings, plan)
    with (
        begin_report(
            settings, queue, _KIND, dry_run=dry_run, reasons=reasons, suffix=run.summary_end
        ) as out,
        run,
    ):
        run.run(out, asks=may_ask and must_ask(settings, MANY))
    return out.finish(undo_file=run.undo and run.undo.name)


def _reasons(settings: Settings, plan: Completion) -> Reasons:
    """Return the way out for what no owner holds."""
    shells = settings.holder_of("")
    option = "--mine" if plan.choice.mine else "--owner"

    def way_out(outcome: Outcome) -> str:
        holder = outcome.holder
        if plan.only_own and (holder is None or is_guard(Lease(holder, None))):
            return f"{SHOW} says more; without {option} it would be completed"
        if plan.only_own:
            return f"{SHOW} says more; --force in place of {option} completes it anyway"
        forced = "--force completes it anyway"
        if holder is None or not holder.startswith(shells):
            return forced
        session = shell_word(holder.removeprefix(shells))
        return f"--owner {session} completes it for that session, {forced}"

    return {Status.NOT_OWNER: way_out}
