"""Light and deep cleans: two looks, a grace period apart, then `lua/ops/repair.lua` checks again.

An upstream worker has a moment between its pop and its lease, and a producer one between its data
and its push, in which a healthy item looks abandoned or orphaned. One look cannot tell. So a clean
notes what looks broken, waits, looks again, and then runs scripts that check the facts once more.
What another clean has returned in the meantime is left to the worker that popped it: see `Seen`.

Due items are promoted first. That needs no second look: no worker or producer leaves a healthy item
in the state `due`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import WALK_ENTRIES, lengths_of, walk_processing
from rwq_cli.core.inspect.lookup import facts_of
from rwq_cli.core.inspect.nested_queues import exclude_nested_queues
from rwq_cli.core.inspect.survey import Survey, find_unguarded, stale_returns, survey
from rwq_cli.core.items.prune import prune, prune_cleaning
from rwq_cli.core.items.schedule import promote
from rwq_cli.core.model import CleanActions, CleanBatch, Outcome, OutcomeBatch, State, Status
from rwq_cli.core.repair.repairs import remove_stale_schedule, repair, restore_guards, without
from rwq_cli.core.server.acknowledged import Acknowledged
from rwq_cli.core.state.probe import find_broken
from rwq_cli.core.state.seen import Seen


def light_clean(
    queue: Queue, *, grace_s: float = GRACE_S, dry_run: bool = False, bury_after: int | None = None
) -> CleanActions:
    """Do a light clean; see `WorkQueue.light_clean`. Reading the actions does the work."""
    return CleanActions(_counted(_light_clean(queue, grace_s, dry_run, bury_after)))


def _light_clean(
    queue: Queue, grace_s: float, dry_run: bool, bury_after: int | None
) -> Iterator[CleanBatch]:
    queue.connection.set_no_touch()
    # Raise `WrongType` even if there is nothing to push.
    queue.call("LLEN", queue.keys.main)
    # Before anything is done, so that a dry run sees what the run sees.
    suspects = broken_in_processing(queue)
    yield from _promote(queue, dry_run)
    yield from _prune(queue, "returns", stale_returns(queue), dry_run)
    if suspects:
        _wait_and_drop_pushed(queue, suspects, grace_s)
        yield from _repair_processing(queue, suspects, bury_after, dry_run)


def deep_clean(
    queue: Queue, *, grace_s: float = GRACE_S, dry_run: bool = False, bury_after: int | None = None
) -> CleanActions:
    """Do a deep clean; see `WorkQueue.deep_clean`. Reading the actions does the work.

    Delayed and buried items that lack a guard under a lease name get it back, so that no cleaner
    returns them. That does not change the item, and is not reported.
    """
    return CleanActions(_counted(_deep_clean(queue, grace_s, dry_run, bury_after)))


def _deep_clean(
    queue: Queue, grace_s: float, dry_run: bool, bury_after: int | None
) -> Iterator[CleanBatch]:
    queue.connection.set_no_touch()
    # Before anything is done, so that a dry run sees what the run sees.
    suspects = broken_in_processing(queue)
    found = survey(queue)
    unguarded = find_unguarded(queue)
    due: set[bytes] = set()
    for batch in _promote(queue, dry_run):
        due.update(batch.ids)
        yield batch
    if not (suspects or unguarded or found.is_broken):
        return
    _wait_and_drop_pushed(queue, suspects, grace_s)
    # A repaired ID needs no second repair; in a dry run it would still look broken.
    done: set[bytes] = set()
    for batch in _repair_processing(queue, suspects, bury_after, dry_run):
        done.update(batch.ids)
        yield batch
    yield from _repair_lists(queue, found, done, bury_after, dry_run)
    done |= due
    yield from _prune_entries(queue, found, done, due, dry_run)
    for _ in restore_guards(queue, without(unguarded, done), dry_run=dry_run):
        pass


def _counted(batches: Iterator[CleanBatch]) -> Iterator[CleanBatch]:
    """The actions; a `ServerError` gets the number of actions in all steps of a clean."""
    with Acknowledged() as acknowledged:
        for batch in batches:
            acknowledged.add(len(batch))
            yield batch


@dataclass(slots=True)
class Suspects:
    """The IDs in processing that look broken.

    Attributes:
        abandoned: Items that look abandoned.
        ghosts: IDs that look like ghosts.
    """

    abandoned: Seen = field(default_factory=Seen)
    ghosts: dict[bytes, None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.abandoned or self.ghosts)


def broken_in_processing(queue: Queue) -> Suspects:
    """The IDs in processing that look abandoned, or like ghosts."""
    found = Suspects()
    queue.progress.begin("reading processing", lengths_of(queue, queue.keys.processing))
    for item_id, state, identity in find_broken(queue, walk_processing(queue)):
        if state is State.GHOST:
            found.ghosts[item_id] = None
        else:
            found.abandoned.note(item_id, identity)
    return found


def _wait_and_drop_pushed(queue: Queue, suspects: Suspects, grace_s: float) -> None:
    """Wait, and drop the suspects whose entry in processing was pushed meanwhile.

    Promotion comes before this: it may rotate processing.
    """
    seen = suspects.abandoned
    if seen:
        for places in _places(queue):
            seen.place(places)
    queue.clock.sleep(grace_s)
    if seen:
        done: set[bytes] = set()
        moved: set[bytes] = set()
        for places in _places(queue):
            moved.update(item_id for item_id in seen.moved(places) if item_id not in done)
            done.update(places)
        seen.remove(moved)


def _places(queue: Queue) -> Iterator[dict[bytes, int]]:
    """The places of all IDs in processing from the right end, which was pushed first, in pages."""
    queue.progress.begin("reading processing again", lengths_of(queue, queue.keys.processing))
    pages = walk_processing(queue, page_size=WALK_ENTRIES)
    for page in pages:
        # Of two entries, the one nearer to the right end is older.
        last = pages.offset + len(page) - 1
        yield dict(zip(reversed(page), range(last, pages.offset - 1, -1), strict=True))


def _repair_processing(
    queue: Queue, suspects: Suspects, bury_after: int | None, dry_run: bool
) -> Iterator[CleanBatch]:
    # An abandoned item that also waits is duplicated: its entry in processing is removed.
    expected = (State.ABANDONED, State.DUPLICATED)
    seen = suspects.abandoned
    for batch in repair(
        queue, list(seen), expected, seen=seen, bury_after=bury_after, dry_run=dry_run
    ):
        yield CleanBatch(batch, State.ABANDONED, "processing", dropped=State.DUPLICATED)
    for batch in repair(queue, list(suspects.ghosts), (State.GHOST,), dry_run=dry_run):
        yield CleanBatch(batch, State.GHOST, "processing")


def _repair_lists(
    queue: Queue, found: Survey, done: set[bytes], bury_after: int | None, dry_run: bool
) -> Iterator[CleanBatch]:
    # Another queue, whose items look like this queue's, may have been created since.
    orphaned = exclude_nested_queues(queue, without(found.orphaned, done), queue.keys.id_prefixes)
    for ids, state, where in (
        (orphaned, State.ORPHANED, None),
        (found.main_ghosts, State.GHOST, "main"),
        (found.duplicated, State.DUPLICATED, "main"),
    ):
        repaired = repair(
            queue,
            without(ids, done),
            (state,),
            seen=None if state is State.GHOST else found.seen,
            bury_after=bury_after,
            dry_run=dry_run,
        )
        for batch in repaired:
            done.update(batch.ids)
            yield CleanBatch(batch, state, where)


def _prune_entries(
    queue: Queue, found: Survey, done: set[bytes], due: set[bytes], dry_run: bool
) -> Iterator[CleanBatch]:
    # The script does not look up items in the lists, and promotion may have dropped the entry that
    # made an entry of cleaning stale, so the facts are read again.
    states = dict(found.stale_cleaning)
    stale_cleaning = without(states, due)
    stale = [f.item_id for f in facts_of(queue, stale_cleaning) if f.is_stale_in_cleaning]
    for item_id in dict.fromkeys(prune_cleaning(queue, stale, dry_run=dry_run)):
        yield _pruned({item_id: states[item_id]}, "cleaning")
    entries: dict[bytes, list[str]] = {}
    for item_id, where in found.stale_schedule:
        entries.setdefault(item_id, []).append(where)
    for batch in remove_stale_schedule(queue, without(entries, done), dry_run=dry_run):
        for where in ("delayed", "buried"):
            pruned = {o.item_id: o.state for o in batch if where in entries[o.item_id]}
            if pruned:
                yield _pruned(pruned, where)
    for where in ("delayed", "buried"):
        ghosts = [item_id for item_id, name in found.scheduled_ghosts if name == where]
        # A ghost that was dropped from a list still has this entry; promotion drops its own.
        yield from _prune(queue, where, without(ghosts, due), dry_run)
    yield from _prune(queue, "returns", found.stale_returns, dry_run)


def _promote(queue: Queue, dry_run: bool) -> Iterator[CleanBatch]:
    for batch in promote(queue, dry_run=dry_run):
        yield CleanBatch(batch, State.DUE, "delayed")


def _prune(
    queue: Queue, where: str, ghosts: Iterable[bytes], dry_run: bool
) -> Iterator[CleanBatch]:
    for pruned in prune(queue, where, ghosts, dry_run=dry_run):
        yield _pruned(dict.fromkeys(pruned, State.GHOST), where)


def _pruned(states: Mapping[bytes, State | None], where: str) -> CleanBatch:
    """The actions for pruned entries, by ID the state of its item."""
    outcomes = (Outcome(item_id, Status.PRUNED, state=state) for item_id, state in states.items())
    return CleanBatch(OutcomeBatch.of(outcomes), State.GHOST, where)
