"""Light and deep cleans: a look, a grace period, then `lua/ops/repair.lua` checks again.

An upstream worker has a moment between its pop and its lease, and a producer one between its data
and its push, in which a healthy item looks abandoned or orphaned. One look cannot tell. So a clean
notes what looks broken, waits, and then runs scripts that check the facts once more. What was
pushed in the meantime is left to the worker that popped it: see `FirstLook`.

Due items are promoted first. That needs no second look: no worker or producer leaves a healthy item
in the state `due`.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from rwq_cli.core.batches import BATCH_ITEMS, Acknowledged
from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import ListCursor, ScheduledCursor, lengths_of
from rwq_cli.core.inspect.keyspace import survey_facts
from rwq_cli.core.inspect.lookup import facts_of
from rwq_cli.core.items.repairs import CleanLock, prune, repair, restore_guards, without
from rwq_cli.core.items.schedule import promote
from rwq_cli.core.model import Batched, Outcome, OutcomeBatch, State, Status
from rwq_cli.core.state.expected import FirstLook
from rwq_cli.core.state.probe import find_broken
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


@dataclass(slots=True)
class CleanBatch:
    """The actions of one call of a clean.

    `state` is that of the IDs that were neither pruned, whose outcome has it, nor dropped, if
    `dropped` is another one. `where` is that of `CleanAction`.
    """

    outcomes: OutcomeBatch
    state: State
    where: str | None
    dropped: State | None = None

    @property
    def ids(self) -> Sequence[bytes]:
        """The IDs."""
        return self.outcomes.ids

    def __len__(self) -> int:
        return len(self.outcomes)

    def __iter__(self) -> Iterator[CleanAction]:
        for item_id, status, _, pruned in self.outcomes:
            dropped = self.dropped if status is Status.DROPPED else None
            yield CleanAction(
                item_id, Repair(status.value), pruned or dropped or self.state, self.where
            )

    def counts(self) -> dict[Repair, int]:
        """How often each repair was done."""
        return {Repair(status.value): n for status, n in self.outcomes.counts().items()}


class CleanActions(Batched[CleanAction]):
    """The actions of a clean."""

    batches: Iterator[CleanBatch]


_Actions = Iterator[CleanBatch]
# By structure, IDs with their states.
_Entries = defaultdict[str, dict[bytes, State]]
_SCHEDULES = ("delayed", "buried")


def light_clean(
    queue: Queue, *, grace_s: float = GRACE_S, dry_run: bool = False, bury_after: int | None = None
) -> CleanActions:
    """Do a light clean; see `WorkQueue.light_clean`. Reading the actions does the work."""
    return _Clean(queue, grace_s, dry_run, bury_after).run(_Clean.light)


def deep_clean(
    queue: Queue, *, grace_s: float = GRACE_S, dry_run: bool = False, bury_after: int | None = None
) -> CleanActions:
    """Do a deep clean; see `WorkQueue.deep_clean`. Reading the actions does the work."""
    return _Clean(queue, grace_s, dry_run, bury_after).run(_Clean.deep)


class _Clean:
    """One run of a clean."""

    def __init__(self, queue: Queue, grace_s: float, dry_run: bool, bury_after: int | None) -> None:
        self._queue = queue
        self._grace_s = grace_s
        self._dry_run = dry_run
        self._bury_after = bury_after
        self._lock = CleanLock(queue, dry_run=dry_run)
        # In processing.
        self._abandoned: dict[bytes, None] = {}
        self._ghosts: dict[bytes, None] = {}
        # What only a deep clean repairs: items that must be returned or lose an entry; entries of
        # IDs without data, and in cleaning and returns stale ones; entries of items in a list.
        self._broken: defaultdict[State, list[bytes]] = defaultdict(list)
        self._main_ghosts: list[bytes] = []
        self._entries: _Entries = defaultdict(dict)
        self._stale: _Entries = defaultdict(dict)
        self._unguarded: dict[bytes, None] = {}
        # A repaired ID needs no second repair; in a dry run it would still look broken.
        self._done: set[bytes] = set()

    def run(self, actions: "Callable[[_Clean], _Actions]") -> CleanActions:
        """The actions under the lock; a `ServerError` gets the number of those before it."""

        def batches() -> _Actions:
            self._queue.connection.set_no_touch()
            with Acknowledged() as acknowledged, self._lock:
                for batch in self._lock.kept(actions(self)):
                    acknowledged.add(len(batch))
                    yield batch

        return CleanActions(batches())

    def light(self) -> _Actions:
        # Everything is read before anything is done, so that a dry run sees what the run sees.
        queue = self._queue
        processing = ListCursor(queue, queue.keys.processing)
        delayed = ScheduledCursor(queue, "delayed", page_size=1)
        # Main, so that a wrong type is an error even if there is nothing to push.
        first_commands = processing.first_command(), delayed.first_command()
        others = ("EXISTS", queue.keys.returns), ("LLEN", queue.keys.main)
        (seconds, micros), *pages, counted, _ = queue.call_all(
            [("TIME",), *first_commands, *others]
        )
        look = FirstLook(int(seconds) * 1000 + int(micros) // 1000)
        processing.start(pages[0])
        delayed.start(pages[1])
        queue.progress.begin("reading processing", lengths_of(queue, queue.keys.processing))
        for item_id, state, digest in find_broken(queue, self._lock.kept(processing)):
            if state is State.GHOST:
                self._ghosts[item_id] = None
            else:
                self._abandoned[item_id] = None
                look.digests[item_id] = digest
        if next(delayed, None) and delayed.scores[0] <= look.at_ms:
            yield from self._promote()
        samples = 1 + 2 * len(self._abandoned) // BATCH_ITEMS if counted else 0
        yield from self._prune("returns", samples=samples)
        if self._abandoned or self._ghosts:
            self._lock.sleep(self._grace_s)
            yield from self._repair_processing(look)

    def deep(self) -> _Actions:
        queue, look = self._queue, FirstLook(self._queue.now_ms())
        has_due = False

        def note(facts: Facts) -> None:
            nonlocal has_due
            has_due = has_due or (facts.due_ms is not None and facts.due_ms <= look.at_ms)
            if facts.is_unguarded and not facts.in_processing:
                self._unguarded[facts.item_id] = None
            if facts.in_processing and facts.state is State.GHOST:
                self._ghosts[facts.item_id] = None
            elif facts.state is State.ABANDONED:
                self._abandoned[facts.item_id] = None
                look.note(facts)
            self._lock.renew()

        for facts in survey_facts(queue, on_listed=note, on_keys=lambda _: self._lock.renew()):
            self._note_suspect(facts)
            look.note(facts)
        due: set[bytes] = set()
        for batch in self._promote() if has_due else ():
            due.update(batch.ids)
            yield batch
        found = (self._abandoned, self._ghosts, self._broken, self._main_ghosts)
        if not (any(found) or self._entries or self._stale or self._unguarded):
            return
        self._lock.sleep(self._grace_s)
        for batch in self._repair_processing(look):
            self._done.update(batch.ids)
            yield batch
        for ids, state, where in (
            (self._broken[State.ORPHANED], State.ORPHANED, None),
            (self._main_ghosts, State.GHOST, "main"),
            (self._broken[State.DUPLICATED], State.DUPLICATED, "main"),
        ):
            known = None if state is State.GHOST else look
            for outcomes in self._repair(without(ids, self._done), state, look=known):
                self._done.update(outcomes.ids)
                yield CleanBatch(outcomes, state, where)
        self._done |= due
        yield from self._prune_entries(due)
        unguarded = without(self._unguarded, self._done)
        deque(restore_guards(queue, unguarded, dry_run=self._dry_run), maxlen=0)

    def _note_suspect(self, facts: Facts) -> None:
        """Note what is to be repaired of an ID that was looked up everywhere."""
        item_id, state = facts.item_id, facts.state
        if not facts.is_unguarded:
            self._unguarded.pop(item_id, None)
        if state is State.GHOST:
            if facts.in_main:
                self._main_ghosts.append(item_id)
            if facts.in_processing:
                self._ghosts[item_id] = None
        elif state in (State.ORPHANED, State.DUPLICATED):
            self._broken[state].append(item_id)
        for name, score in zip(_SCHEDULES, (facts.due_ms, facts.buried_ms), strict=True):
            if score is not None and state is State.GHOST:
                self._entries[name][item_id] = state
            elif score is not None and facts.has_stale_schedule:
                self._stale[name][item_id] = state
        if facts.is_stale_in_cleaning:
            self._entries["cleaning"][item_id] = state if facts.has_data else State.GHOST
        if facts.has_stale_returns:
            self._entries["returns"][item_id] = State.GHOST

    def _repair_processing(self, look: FirstLook) -> _Actions:
        # An abandoned item that also waits is duplicated: its entry in processing is removed.
        expected = (State.ABANDONED, State.DUPLICATED)
        for batch in self._repair(self._abandoned, *expected, look=look):
            yield CleanBatch(batch, State.ABANDONED, "processing", dropped=State.DUPLICATED)
        for batch in self._repair(self._ghosts, State.GHOST):
            yield CleanBatch(batch, State.GHOST, "processing")

    def _repair(
        self, ids: Iterable[bytes], *states: State, look: FirstLook | None = None
    ) -> Iterator[OutcomeBatch]:
        bury_after, dry_run = self._bury_after, self._dry_run
        return repair(
            self._queue, list(ids), *states, look=look, bury_after=bury_after, dry_run=dry_run
        )

    def _prune_entries(self, due: set[bytes]) -> _Actions:
        # The script does not look up items in the lists, and promotion may have dropped the entry
        # that made an entry of cleaning stale, so the facts are read again.
        in_cleaning = without(self._entries["cleaning"], due)
        again = facts_of(self._queue, in_cleaning)
        yield from self._prune("cleaning", [f.item_id for f in again if f.is_stale_in_cleaning])
        scheduled = {**self._stale["delayed"], **self._stale["buried"]}
        for batch in self._repair(without(scheduled, self._done)):
            for where in _SCHEDULES:
                entries = self._stale[where]
                if removed := {o.item_id: o.state for o in batch if o.item_id in entries}:
                    yield _pruning(removed, where)
        # A ghost that was dropped from a list still has these entries; promotion drops its own.
        for where in _SCHEDULES:
            yield from self._prune(where, without(self._entries[where], due))
        yield from self._prune("returns", self._entries["returns"])

    def _prune(self, where: str, ids: Iterable[bytes] = (), *, samples: int = 0) -> _Actions:
        known = self._entries[where]
        for pruned in prune(self._queue, where, ids, samples=samples, dry_run=self._dry_run):
            yield _pruning({item_id: known.get(item_id, State.GHOST) for item_id in pruned}, where)

    def _promote(self) -> _Actions:
        for batch in promote(self._queue, dry_run=self._dry_run):
            yield CleanBatch(batch, State.DUE, "delayed")


def _pruning(states: Mapping[bytes, State | None], where: str) -> CleanBatch:
    """The actions for pruned entries, by ID the state of its item."""
    outcomes = (Outcome(item_id, Status.PRUNED, state=state) for item_id, state in states.items())
    return CleanBatch(OutcomeBatch.of(outcomes), State.GHOST, where)
