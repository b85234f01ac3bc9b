"""Light and deep cleans: a look, a grace period, then `lua/ops/repair.lua` checks again.

An upstream worker has a moment between its pop and its lease, and a producer one between its data
and its push, in which a healthy item looks abandoned or orphaned. One look cannot tell. So a clean
notes what looks broken, waits, and then runs scripts that check the facts once more. What was
pushed in the meantime is left to the worker that popped it: see `FirstLook`.

Due items are promoted first. That needs no second look: no worker or producer leaves a healthy item
in the state `due`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from rwq_cli.core.batches import BATCH_ITEMS
from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import ListCursor, ScheduledCursor, lengths_of
from rwq_cli.core.inspect.lookup import facts_of
from rwq_cli.core.inspect.survey import Survey, survey_facts
from rwq_cli.core.items.prune import prune
from rwq_cli.core.items.schedule import promote
from rwq_cli.core.model import Outcome, OutcomeBatch, State, Status
from rwq_cli.core.repair.actions import CleanActions, CleanBatch
from rwq_cli.core.repair.lock import CleanLock
from rwq_cli.core.repair.repairs import remove_stale_schedule, repair, restore_guards, without
from rwq_cli.core.server.acknowledged import Acknowledged
from rwq_cli.core.state.first_look import FirstLook
from rwq_cli.core.state.probe import find_broken
from rwq_cli.core.state.rules import Facts

_Actions = Iterator[CleanBatch]


def light_clean(
    queue: Queue, *, grace_s: float = GRACE_S, dry_run: bool = False, bury_after: int | None = None
) -> CleanActions:
    """Do a light clean; see `WorkQueue.light_clean`. Reading the actions does the work."""
    run = _Clean(queue, grace_s, dry_run, bury_after)
    return CleanActions(run.alone(run.light))


def deep_clean(
    queue: Queue, *, grace_s: float = GRACE_S, dry_run: bool = False, bury_after: int | None = None
) -> CleanActions:
    """Do a deep clean; see `WorkQueue.deep_clean`. Reading the actions does the work."""
    run = _Clean(queue, grace_s, dry_run, bury_after)
    return CleanActions(run.alone(run.deep))


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
        # A repaired ID needs no second repair; in a dry run it would still look broken.
        self._done: set[bytes] = set()

    def alone(self, actions: Callable[[], _Actions]) -> _Actions:
        """The actions under the lock; a `ServerError` gets the number of those before it."""
        self._queue.connection.set_no_touch()
        with Acknowledged() as acknowledged, self._lock:
            for batch in self._lock.kept(actions()):
                acknowledged.add(len(batch))
                yield batch

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
        pruned = prune(queue, "returns", samples=samples, dry_run=self._dry_run)
        yield from _pruned("returns", pruned)
        if self._abandoned or self._ghosts:
            self._lock.sleep(self._grace_s)
            yield from self._repair_processing(look)

    def deep(self) -> _Actions:
        queue, found = self._queue, Survey()
        look = FirstLook(queue.now_ms())
        has_due = False

        def note(facts: Facts) -> None:
            nonlocal has_due
            has_due = has_due or (facts.due_ms is not None and facts.due_ms <= look.at_ms)
            if facts.is_unguarded and not facts.in_processing:
                found.unguarded[facts.item_id] = None
            if facts.in_processing and facts.state is State.GHOST:
                self._ghosts[facts.item_id] = None
            elif facts.state is State.ABANDONED:
                self._abandoned[facts.item_id] = None
                look.note(facts)
            self._lock.renew()

        for facts in survey_facts(queue, on_listed=note, on_keys=lambda _: self._lock.renew()):
            found.add(facts)
            look.note(facts)
        due: set[bytes] = set()
        for batch in self._promote() if has_due else ():
            due.update(batch.ids)
            yield batch
        if not (self._abandoned or self._ghosts or found.is_broken):
            return
        self._lock.sleep(self._grace_s)
        for batch in self._repair_processing(look):
            self._done.update(batch.ids)
            yield batch
        yield from self._repair_lists(found, look)
        self._done |= due
        yield from self._prune_entries(found, due)
        unguarded = without(found.unguarded, self._done)
        for _ in restore_guards(queue, unguarded, dry_run=self._dry_run):
            pass

    def _repair_processing(self, look: FirstLook) -> _Actions:
        # An abandoned item that also waits is duplicated: its entry in processing is removed.
        expected = (State.ABANDONED, State.DUPLICATED)
        for batch in self._repair(self._abandoned, expected, look):
            yield CleanBatch(batch, State.ABANDONED, "processing", dropped=State.DUPLICATED)
        for batch in self._repair(self._ghosts, (State.GHOST,)):
            yield CleanBatch(batch, State.GHOST, "processing")

    def _repair_lists(self, found: Survey, look: FirstLook) -> _Actions:
        for ids, state, where in (
            (found.orphaned, State.ORPHANED, None),
            (found.main_ghosts, State.GHOST, "main"),
            (found.duplicated, State.DUPLICATED, "main"),
        ):
            known = None if state is State.GHOST else look
            for batch in self._repair(without(ids, self._done), (state,), known):
                self._done.update(batch.ids)
                yield CleanBatch(batch, state, where)

    def _repair(
        self, ids: Iterable[bytes], states: Iterable[State], look: FirstLook | None = None
    ) -> Iterator[OutcomeBatch]:
        return repair(
            self._queue,
            list(ids),
            states,
            look=look,
            bury_after=self._bury_after,
            dry_run=self._dry_run,
        )

    def _prune_entries(self, found: Survey, due: set[bytes]) -> _Actions:
        queue, dry_run = self._queue, self._dry_run
        # The script does not look up items in the lists, and promotion may have dropped the entry
        # that made an entry of cleaning stale, so the facts are read again.
        states = dict(found.stale_cleaning)
        stale = [f.item_id for f in facts_of(queue, without(states, due)) if f.is_stale_in_cleaning]
        for pruned in prune(queue, "cleaning", stale, dry_run=dry_run):
            yield _pruning({item_id: states[item_id] for item_id in pruned}, "cleaning")
        entries: dict[bytes, list[str]] = {}
        for item_id, where in found.stale_schedule:
            entries.setdefault(item_id, []).append(where)
        for batch in remove_stale_schedule(queue, without(entries, self._done), dry_run=dry_run):
            for where in ("delayed", "buried"):
                if removed := {o.item_id: o.state for o in batch if where in entries[o.item_id]}:
                    yield _pruning(removed, where)
        for where in ("delayed", "buried"):
            ghosts = [item_id for item_id, name in found.scheduled_ghosts if name == where]
            # A ghost that was dropped from a list still has this entry; promotion drops its own.
            yield from _pruned(where, prune(queue, where, without(ghosts, due), dry_run=dry_run))
        yield from _pruned("returns", prune(queue, "returns", found.stale_returns, dry_run=dry_run))

    def _promote(self) -> _Actions:
        for batch in promote(self._queue, dry_run=self._dry_run):
            yield CleanBatch(batch, State.DUE, "delayed")


def _pruned(where: str, batches: Iterable[Iterable[bytes]]) -> _Actions:
    """The actions for pruned entries of ghosts."""
    for batch in batches:
        yield _pruning(dict.fromkeys(batch, State.GHOST), where)


def _pruning(states: Mapping[bytes, State | None], where: str) -> CleanBatch:
    """The actions for pruned entries, by ID the state of its item."""
    outcomes = (Outcome(item_id, Status.PRUNED, state=state) for item_id, state in states.items())
    return CleanBatch(OutcomeBatch.of(outcomes), State.GHOST, where)
