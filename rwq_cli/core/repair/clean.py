"""Light and deep cleans, and the fixes that they share with the doctor.

Between the pop and the lease of an upstream worker, and between the data and the push of a
producer, a healthy item looks abandoned or orphaned. So a clean notes what looks broken, waits, and
then runs scripts that check the facts once more as they act. What was pushed in the meantime is
left to the worker that popped it: see `FirstLook`.

Due items are promoted first. That needs no second look: no worker or producer leaves a healthy item
in the state `due`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, count
from typing import NamedTuple

from rwq_cli.core.batches import BUDGET, Acknowledged, in_batches
from rwq_cli.core.clock import GRACE_S, unix_ms
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import ListCursor, ScheduledCursor, lengths_of
from rwq_cli.core.inspect.history import HistoryWriter
from rwq_cli.core.inspect.keyspace import Survey
from rwq_cli.core.inspect.lookup import facts_of
from rwq_cli.core.items.lock import QueueLock
from rwq_cli.core.items.repairs import prune, repair, restore_guards
from rwq_cli.core.items.schedule import promote
from rwq_cli.core.lua import DIGEST_DIGITS
from rwq_cli.core.model import Outcome, OutcomeBatch, State, Status
from rwq_cli.core.repair.findings import Code, Problem, Problems, problems_of
from rwq_cli.core.state.expected import FirstLook
from rwq_cli.core.state.rules import Facts


class Repair(StrEnum):
    """What a clean did to one ID."""

    RETURNED = "returned"
    DROPPED = "dropped"
    PROMOTED = "promoted"
    PRUNED = "pruned"
    BURIED = "buried"


class CleanAction(NamedTuple):
    """One repair that a clean did, or in a dry run would do.

    Attributes:
        item_id: The ID.
        action: The repair.
        state: The state that both looks saw, which is the reason; of a pruned entry, the state of
            its item.
        where: The structure that was changed: `main`, `processing`, `cleaning`, `delayed`,
            `buried` or `returns`; None for an item that was in none.
    """

    item_id: bytes
    action: Repair
    state: State
    where: str | None = None


Suspects = dict[bytes, Problems]
_REPAIRS: Mapping[str, Repair] = {repair.value: repair for repair in Repair}
# What is done to items that were lost.
_OF_LOST = frozenset({Repair.RETURNED, Repair.BURIED})
# What a clean fixes, in this order. Due items are promoted before.
CLEANED = (
    *(Code.ABANDONED, Code.ORPHANED, Code.STALE_SCHEDULE, Code.GHOST, Code.EMPTY_ID),
    *(Code.DUPLICATED, Code.STALE_CLEANING, Code.STALE_RETURNS, Code.UNGUARDED),
)
# The states that an ID must still have, if that is not the one it had: the entry of an abandoned
# item that waits by now is surplus; an item in a list, in any state, loses its other entry.
_EXPECTED: Mapping[Code, tuple[State, ...]] = {
    Code.ABANDONED: (State.ABANDONED, State.DUPLICATED),
    Code.EMPTY_ID: (State.GHOST,),
    Code.STALE_SCHEDULE: (),
}
# Findings that a new item with the same ID may seem to confirm.
OF_ONE_ITEM = frozenset({Code.ABANDONED, Code.ORPHANED, Code.DUPLICATED})


@dataclass
class Look:
    """What a first look saw; what is still so a grace period later is fixed."""

    first: FirstLook
    suspects: Suspects = field(default_factory=Suspects)
    has_due: bool = False
    # How many calls are to look at counts of returns that are chosen at random.
    samples: int = 0

    def note(self, facts: Facts) -> None:
        """Note what is wrong with an ID, in place of what was seen of it before."""
        self.has_due |= facts.due_ms is not None and facts.due_ms <= self.first.at_ms
        if problems := problems_of(facts):
            self.suspects[facts.item_id] = problems
            if not OF_ONE_ITEM.isdisjoint([problem.code for problem in problems]):
                self.first.note(facts)
        else:
            self.suspects.pop(facts.item_id, None)


class Fixer(NamedTuple):
    queue: Queue
    look: Look
    lock: QueueLock
    dry_run: bool
    bury_after: int | None = None

    def fix(
        self, codes: Iterable[Code], promoted: Set[bytes] = frozenset()
    ) -> Iterator[tuple[Problem, OutcomeBatch]]:
        by_problem: defaultdict[Problem, list[bytes]] = defaultdict(list)
        for item_id, problems in self.look.suspects.items():
            for problem in problems:
                by_problem[problem].append(item_id)
        # Promotion removes the entries of what is not due after all; a return those of an item in
        # the sorted sets.
        unscheduled = set(promoted)
        done = {"cleaning": promoted, "delayed": unscheduled, "buried": unscheduled}
        for code in codes:
            for problem in [candidate for candidate in by_problem if candidate.code is code]:
                handled = done.get(problem.where or "", ())
                ids = [item_id for item_id in by_problem[problem] if item_id not in handled]
                for outcomes in self.lock.kept(self._fix(problem, ids)):
                    if code is Code.ABANDONED:
                        unscheduled.update(outcomes.ids)
                    yield problem, outcomes

    def _fix(self, problem: Problem, ids: list[bytes]) -> Iterator[OutcomeBatch]:
        queue, dry_run = self.queue, self.dry_run
        code, state, where = problem
        if code is Code.DUE:
            yield from promote(queue, only=frozenset(ids), dry_run=dry_run)
        elif code is Code.UNGUARDED:
            yield from restore_guards(queue, ids, dry_run=dry_run)
        elif code is Code.ENDLESS_LEASE:
            for batch in in_batches(ids, items_max=queue.budget("delete_stray_leases").items):
                args = {"endless_only": True, "dry_run": dry_run}
                deleted = queue.run("delete_stray_leases", *batch, **args)
                yield OutcomeBatch.all_of(deleted, Status.REMOVED)
        elif code in OF_ONE_ITEM or code is Code.STALE_SCHEDULE or where in ("processing", "main"):
            expected = _EXPECTED.get(code, (state,)), self.look.first, self.bury_after
            for outcomes in repair(queue, ids, *expected, dry_run=dry_run):
                yield outcomes
                if where == "cleaning" and not dry_run:
                    list(prune(queue, where, outcomes.ids))
        elif where:
            if where == "cleaning":
                # The script does not look up items in the lists.
                ids = [f.item_id for f in facts_of(queue, ids) if f.is_stale_in_cleaning]
            yield from _pruned(prune(queue, where, ids, dry_run=dry_run), state)


def _pruned(batches: Iterable[list[bytes]], state: State) -> Iterator[OutcomeBatch]:
    for ids in batches:
        yield OutcomeBatch.of(Outcome(item_id, Status.PRUNED, state=state) for item_id in ids)


def clean(
    queue: Queue,
    *,
    deep: bool,
    grace_s: float = GRACE_S,
    dry_run: bool = False,
    bury_after: int | None = None,
    history: HistoryWriter | None = None,
) -> Iterator[list[CleanAction]]:
    """See `WorkQueue.light_clean`. Reading the batches does the work, under the lock; a
    `ServerError` gets the number of actions before it. What was found is noted in the `history`."""
    queue.connection.set_no_touch()
    with Acknowledged() as acknowledged, QueueLock(queue, "clean", dry_run=dry_run) as lock:
        # Everything is read before anything is done, so that a dry run sees what the run sees.
        look = (_deep_look if deep else _light_look)(queue, lock)
        fixer, abandoned = Fixer(queue, look, lock, dry_run, bury_after), 0
        for (_, seen_state, where), outcomes in lock.kept(_repairs(fixer, grace_s)):
            acknowledged.add(len(outcomes))
            batch = []
            for item_id, status, _, state in outcomes:
                state = state or seen_state
                if status is Status.DROPPED and state is State.ABANDONED:
                    # It waits, too.
                    state = State.DUPLICATED
                batch.append(CleanAction(item_id, _REPAIRS[status], state, where))
            abandoned += sum(action.action in _OF_LOST for action in batch)
            yield batch
        if history is not None and not dry_run:
            history.note_clean(queue, abandoned, lock.release)


def _repairs(fixer: Fixer, grace_s: float) -> Iterator[tuple[Problem, OutcomeBatch]]:
    """What was done about each problem, without what needs no report."""
    queue, look, lock, dry_run, _ = fixer
    promoted: set[bytes] = set()
    for outcomes in promote(queue, dry_run=dry_run) if look.has_due else ():
        promoted.update(outcomes.ids)
        yield Problem(Code.DUE, State.DUE, "delayed"), outcomes
    counts = Problem(Code.STALE_RETURNS, State.GHOST, "returns")
    pruned = prune(queue, "returns", samples=look.samples, dry_run=dry_run)
    yield from ((counts, outcomes) for outcomes in _pruned(pruned, State.GHOST))
    if not any(
        problem.code in CLEANED for problems in look.suspects.values() for problem in problems
    ):
        return
    lock.sleep(grace_s)
    for problem, outcomes in fixer.fix(CLEANED, promoted):
        if problem.code is Code.ORPHANED:
            yield problem._replace(where=None), outcomes
        elif problem.code is not Code.UNGUARDED:
            yield problem, outcomes


_BROKEN = {
    state.code: (Problem(Code(state.value), state, "processing"),)
    for state in (State.ABANDONED, State.GHOST)
}


def _light_look(queue: Queue, lock: QueueLock) -> Look:
    processing = ListCursor(queue, queue.keys.processing)
    delayed = ScheduledCursor(queue, "delayed", page_size=1)
    first_commands = processing.first_command(), delayed.first_command()
    # Main, so that a wrong type is an error even if there is nothing to push.
    others = ("EXISTS", queue.keys.returns), ("LLEN", queue.keys.main)
    now, *pages, counted, _ = queue.call_all([("TIME",), *first_commands, *others])
    look = Look(FirstLook(unix_ms(now)))
    processing.start(pages[0])
    delayed.start(pages[1])
    queue.progress.begin("reading processing", lengths_of(queue, queue.keys.processing))
    entries = chain.from_iterable(lock.kept(processing))
    args = {"in_main": 0, "in_processing": 1, "digests_too": True}
    for batch, (codes, digests, *_) in queue.read_each("states", entries, **args):
        pairs = list(zip(batch, codes.decode("ascii"), strict=True))
        look.suspects.update((i, _BROKEN[code]) for i, code in pairs if code in _BROKEN)
        abandoned = (item_id for item_id, code in pairs if code == State.ABANDONED.code)
        for item_id, at in zip(abandoned, count(0, DIGEST_DIGITS), strict=False):
            look.first.digests[item_id] = digests[at : at + DIGEST_DIGITS]
    look.has_due = next(delayed, None) is not None and delayed.scores[0] <= look.first.at_ms
    look.samples = 1 + 2 * len(look.suspects) // BUDGET.items if counted else 0
    return look


def _deep_look(queue: Queue, lock: QueueLock) -> Look:
    look = Look(FirstLook(queue.now_ms()))
    survey = Survey(queue, on_listed=look.note, pulse=lock.renew)
    for facts in lock.kept(survey.facts()):
        look.note(facts)
    return look
