"""Light and deep cleans: two looks, a grace period apart, and an act that looks again.

Before all else they put onto main what is due; that needs no second look, because a guard of ours
is proof.

An upstream worker has a moment between its pop and its lease, and a producer one between its data
and its push, in which a healthy item looks abandoned or orphaned. One look cannot tell. So a clean
notes what looks broken, waits, and then acts by scripts that check the facts once more.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from os import urandom

from rwq_cli.core.batches import BATCH_ITEMS, ids_per_call, in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import PAGE_SIZE, lengths_of, walk_list, walk_processing
from rwq_cli.core.inspect.nested_queues import exclude_nested_queues
from rwq_cli.core.inspect.report import probe
from rwq_cli.core.inspect.survey import (
    Survey,
    as_count,
    listed_ids,
    scan_returns,
    stale_returns,
    survey,
)
from rwq_cli.core.items.processing import FEW_IDS, act_by_pages, act_one_by_one
from rwq_cli.core.items.promote import promote
from rwq_cli.core.keys import CLEANING_GUARD, CLEANING_GUARD_MS
from rwq_cli.core.model import CleanAction, Repair, State
from rwq_cli.core.repair.guards import find_unguarded, restore_guards
from rwq_cli.core.state.rules import is_guard

Sleep = Callable[[float], None]


def light_clean(
    queue: Queue,
    *,
    grace_s: float,
    dry_run: bool,
    sleep: Sleep,
    bury_after: int | None = None,
) -> Iterator[CleanAction]:
    """Return what dead workers left in processing, and drop what is no item any more.

    What is due is promoted, and counts of returns go whose items are gone.

    Args:
        queue: The queue.
        grace_s: Seconds between the two looks.
        dry_run: Look twice, but change nothing, and say what would be done.
        sleep: Waits for so many seconds.
        bury_after: What a clean brought back so often already, 0 or more, is buried instead of
            being returned; None for never.

    Yields:
        What was done, as the server acknowledges it.
    """
    foreseen: dict[bytes, Repair] = {}
    for action in _promote(queue, dry_run=dry_run):
        if dry_run:
            foreseen[action.item_id] = action.action
        yield action
    yield from _prune_returns(queue, dry_run=dry_run)
    suspects = _broken_in_processing(queue, foreseen)
    if not suspects.states:
        return
    sleep(grace_s)
    if dry_run:
        actions = _still_broken(queue, suspects, foreseen)
        yield from _with_buried(queue, actions, bury_after)
        return
    yield from _act_on_processing(queue, suspects, bury_after)


def deep_clean(
    queue: Queue,
    *,
    grace_s: float,
    dry_run: bool,
    sleep: Sleep,
    bury_after: int | None = None,
) -> Iterator[CleanAction]:
    """Do what a light clean does, and find what is in no list, in too many, or only in a list.

    An orphan is guarded by a lease of our own before the lists are read for the last time. Every
    cleaner of every language leaves a leased item alone, so nobody can push it between that
    reading and our own push: two deep cleans at once, ours or not, push it once. If we die
    meanwhile the guard ends by itself and the item is an orphan again.

    What is delayed or buried and has lost its guard, or that of one generation, is guarded anew,
    so that no cleaner brings it back. That is no change to the item, and is not reported.

    Args:
        queue: The queue.
        grace_s: Seconds between the two looks.
        dry_run: Look twice, but change nothing, and say what would be done.
        sleep: Waits for so many seconds.
        bury_after: What a clean brought back so often already, 0 or more, is buried instead of
            being returned; None for never.

    Yields:
        What was done, as the server acknowledges it.
    """
    foreseen: dict[bytes, Repair] = {}
    for action in _promote(queue, dry_run=dry_run):
        if dry_run:
            foreseen[action.item_id] = action.action
        yield action
    suspects = _broken_in_processing(queue, foreseen)
    first = survey(
        queue,
    )
    for scheduled in (first.scheduled_ghosts, first.stale_schedule):
        # In a dry run these are still there.
        scheduled[:] = [at for at in scheduled if at[1] != "delayed" or at[0] not in foreseen]
    unguarded = (
        {}
        if dry_run
        else find_unguarded(
            queue,
        )
    )
    if not (suspects.states or unguarded) and _is_clean(first):
        return
    sleep(grace_s)
    if dry_run:
        broken = _still_broken(queue, suspects, foreseen)
        actions = list(_with_buried(queue, broken, bury_after))
        yield from actions
        others = list(
            _seen_twice(
                first,
                survey(
                    queue,
                ),
            )
        )
        mended = _no_longer_duplicated(queue, actions, others)
        left = (
            action
            for action in others
            if action.state is not State.DUPLICATED or action.item_id not in mended
        )
        yield from _with_buried(queue, left, bury_after)
        return
    yield from mend(queue, suspects, first, bury_after)
    for item_id in unschedule_listed(queue, restore_guards(queue, unguarded).listed):
        yield CleanAction(item_id, Repair.PRUNED, State.GHOST, unguarded[item_id])


def mend(
    queue: Queue,
    suspects: "Suspects",
    found: Survey,
    bury_after: int | None = None,
) -> Iterator[CleanAction]:
    """The acts of a deep clean on what looked broken a grace period ago; each looks again.

    Args:
        queue: The queue.
        suspects: What looked broken in processing.
        found: What else looked broken.
        bury_after: How many returns of an item are enough, 0 or more; None for any number.

    Yields:
        What was done, as the server acknowledges it.
    """
    yield from _act_on_processing(queue, suspects, bury_after)
    yield from _return_orphans(queue, found.orphaned, bury_after)
    yield from _drop_from_main(queue, found)
    yield from _prune(queue, found)


def _promote(queue: Queue, *, dry_run: bool) -> Iterator[CleanAction]:
    queue.progress.begin("promoting what is due")
    for ids, dropped in promote(queue, dry_run=dry_run):
        queue.progress.advance(len(ids) + len(dropped))
        for item_id in ids:
            yield CleanAction(item_id, Repair.PROMOTED, State.DUE, "delayed")
        for item_id in dropped:
            yield CleanAction(item_id, Repair.PRUNED, State.GHOST, "delayed")


def _prune_returns(queue: Queue, *, dry_run: bool) -> Iterator[CleanAction]:
    """One look is enough: what has no data now is no item that came back, whatever comes next."""
    if dry_run:
        for item_id in stale_returns(
            queue,
        ):
            yield CleanAction(item_id, Repair.PRUNED, State.GHOST, "returns")
        return
    for page in scan_returns(
        queue,
    ):
        for batch in in_batches(page):
            for item_id in prune(queue, "returns", batch):
                yield CleanAction(item_id, Repair.PRUNED, State.GHOST, "returns")


def _with_buried(
    queue: Queue,
    actions: Iterable[CleanAction],
    bury_after: int | None,
) -> Iterator[CleanAction]:
    """What would be done, where what came back too often is buried instead of being returned."""
    if bury_after is None:
        yield from actions
        return
    for batch in in_batches(actions):
        counts = queue.call("HMGET", queue.keys.returns, *(action.item_id for action in batch))
        for action, count in zip(batch, counts, strict=True):
            is_enough = action.action is Repair.RETURNED and as_count(count) >= bury_after
            yield replace(action, action=Repair.BURIED) if is_enough else action


@dataclass(slots=True)
class Suspects:
    """What a look at processing found broken.

    Attributes:
        states: The broken IDs and their states.
        repeated: Those that are in the list more than once.
    """

    states: dict[bytes, State] = field(default_factory=dict)
    repeated: set[bytes] = field(default_factory=set)


def _broken_in_processing(queue: Queue, foreseen: Mapping[bytes, Repair]) -> Suspects:
    """What looks broken; `foreseen` has what a dry run would have promoted, or pruned, by then."""
    found = Suspects()
    queue.progress.begin("reading processing", lengths_of(queue, queue.keys.processing))
    for page in walk_processing(
        queue,
    ):
        for item_id, look in zip(page, probe(queue, page), strict=True):
            guard_ends = item_id in foreseen and is_guard(look.lease)
            leased = look.lease is not None and not guard_ends
            if look.wrong_type or (look.has_data and leased):
                continue
            if item_id in found.states:
                found.repeated.add(item_id)
            found.states[item_id] = State.ABANDONED if look.has_data else State.GHOST
    return found


def _still_broken(
    queue: Queue, first: Suspects, foreseen: Mapping[bytes, Repair]
) -> Iterator[CleanAction]:
    """What the act would do, by a second look and by the script's own rules."""
    second = _broken_in_processing(queue, foreseen)
    waits_again = set(queue.call("LRANGE", queue.keys.main, 0, 499))
    waits_again.update(i for i, action in foreseen.items() if action is Repair.PROMOTED)
    for item_id, state in first.states.items():
        if second.states.get(item_id) == state:
            is_second_entry = state is State.ABANDONED and item_id in waits_again
            yield _in_processing(item_id, State.DUPLICATED if is_second_entry else state)


def _no_longer_duplicated(
    queue: Queue,
    actions: Iterable[CleanAction],
    others: Iterable[CleanAction],
) -> set[bytes]:
    """Which second entries would be gone already when main is looked at.

    Args:
        queue: The queue.
        actions: What would have been done to processing by then.
        others: What else is seen.
    """
    seen = {action.item_id for action in others if action.state is State.DUPLICATED}
    done = {action.item_id: action.action for action in actions if action.item_id in seen}
    if not done:
        return set()
    entries: Counter[bytes] = Counter()
    for page in walk_list(queue, queue.keys.main, newest_first=True):
        entries.update(item_id for item_id in page if item_id in done)
    return {
        item_id
        for item_id, action in done.items()
        if entries[item_id] + (action is Repair.RETURNED) <= 1
    }


def _in_processing(item_id: bytes, state: State) -> CleanAction:
    action = Repair.RETURNED if state is State.ABANDONED else Repair.DROPPED
    return CleanAction(item_id, action, state, "processing")


# How the scripts are told what `None` says here.
_NEVER = -1


def _act_on_processing(
    queue: Queue, suspects: Suspects, bury_after: int | None
) -> Iterator[CleanAction]:
    enough = _NEVER if bury_after is None else bury_after
    # An ID that is in the list twice is taken off by name, all its entries at once: taken off page
    # by page it would be returned once for each.
    by_name = set(suspects.repeated)
    if len(suspects.states) <= FEW_IDS:
        by_name.update(suspects.states)
    by_page = suspects.states.keys() - by_name
    queue.progress.begin("returning", len(suspects.states))
    replies: list[Iterator[tuple[Sequence[bytes], list[bytes]]]] = []
    if by_page:
        replies.append(
            act_by_pages(
                queue,
                "clean_processing",
                (enough,),
                by_page,
                lambda _ids, reply: frozenset(reply[::2]),
                seeks_on=True,
            )
        )
    if by_name:
        length = int(queue.call("LLEN", queue.keys.processing))
        ids = [item_id for item_id in suspects.states if item_id in by_name]
        args = (0, enough)
        replies.append(act_one_by_one(queue, "clean_processing", args, ids, length))
    for called, reply in chain.from_iterable(replies):
        queue.progress.advance(len(called))
        for item_id, done in zip(reply[::2], reply[1::2], strict=True):
            if done in _BROUGHT_BACK:
                yield CleanAction(item_id, _BROUGHT_BACK[done], State.ABANDONED, "processing")
            else:
                yield _in_processing(item_id, State(done.decode()))


# What the scripts say they did to an item that had to be brought back.
_BROUGHT_BACK = {b"returned": Repair.RETURNED, b"buried": Repair.BURIED}


def _return_orphans(
    queue: Queue, orphans: list[bytes], bury_after: int | None
) -> Iterator[CleanAction]:
    if not orphans:
        return
    guard = CLEANING_GUARD + urandom(8).hex().encode()

    def settle(ids: Sequence[bytes], give_back: bool) -> list[bytes]:
        enough = _NEVER if bury_after is None else bury_after
        words = (guard, "1" if give_back else "0", enough, *ids)
        settled: list[bytes] = queue.run("settle_orphans", *words)
        return settled

    # A queue whose items looked like ours may have come to life since.
    orphans = exclude_nested_queues(
        queue,
        orphans,
        (queue.keys.item_prefix, queue.keys.lease_prefix, queue.keys.old_lease_prefix),
    )
    claimed: list[bytes] = []
    meter = queue.progress
    meter.begin("guarding", len(orphans))
    for batch in in_batches(orphans, items_max=BATCH_ITEMS // 4):
        claimed += queue.run("claim_orphans", guard, CLEANING_GUARD_MS, *batch)
        meter.advance(len(batch))
    meter.begin(
        "reading the lists again", lengths_of(queue, queue.keys.main, queue.keys.processing)
    )
    listed = listed_ids(queue, claimed)
    for batch in in_batches([item_id for item_id in claimed if item_id in listed]):
        settle(batch, give_back=False)
    meter.begin("returning", len(claimed))
    for batch in in_batches([item_id for item_id in claimed if item_id not in listed]):
        meter.advance(len(batch))
        reply = settle(batch, give_back=True)
        for item_id, done in zip(reply[::2], reply[1::2], strict=True):
            yield CleanAction(item_id, _BROUGHT_BACK[done], State.ORPHANED)


def _drop_from_main(queue: Queue, found: Survey) -> Iterator[CleanAction]:
    broken = [*dict.fromkeys((*found.main_ghosts, *found.duplicated))]
    if not broken:
        return
    length = int(queue.call("LLEN", queue.keys.main)) + int(
        queue.call("LLEN", queue.keys.processing)
    )
    for batch in in_batches(broken, items_max=max(1, ids_per_call(length) // 4)):
        reply = queue.run("drop_from_main", *batch)
        for item_id, state in zip(reply[::2], reply[1::2], strict=True):
            yield CleanAction(item_id, Repair.DROPPED, State(state.decode()), "main")


def _prune(queue: Queue, found: Survey) -> Iterator[CleanAction]:
    in_hand = _still_stale(queue, found.stale_cleaning)
    for item_id in dict.fromkeys(_prune_cleaning(queue, in_hand)):
        yield CleanAction(item_id, Repair.PRUNED, State.GHOST, "cleaning")
    listed: dict[bytes, list[str]] = {}
    for item_id, where in found.stale_schedule:
        listed.setdefault(item_id, []).append(where)
    for item_id in unschedule_listed(queue, listed):
        for where in listed[item_id]:
            yield CleanAction(item_id, Repair.PRUNED, State.GHOST, where)
    stale = {
        "delayed": [item_id for item_id, name in found.scheduled_ghosts if name == "delayed"],
        "buried": [item_id for item_id, name in found.scheduled_ghosts if name == "buried"],
        "returns": found.stale_returns,
    }
    for where, ids in stale.items():
        for batch in in_batches(ids, items_max=BATCH_ITEMS // 2):
            for item_id in prune(queue, where, batch):
                yield CleanAction(item_id, Repair.PRUNED, State.GHOST, where)


def prune(queue: Queue, where: str, ids: Collection[bytes], page: int = 0) -> list[bytes]:
    """Take entries that belong to nothing off one structure; returns the IDs that were there.

    Args:
        queue: The queue.
        where: `cleaning`, `delayed`, `buried` or `returns`.
        ids: The IDs, a few hundred at most.
        page: Of `cleaning`, how many of its oldest entries to turn round; 0 to look for each ID.
    """
    words = (where, page, *ids)
    pruned: list[bytes] = queue.run("prune", *words)
    return pruned


def unschedule_listed(queue: Queue, ids: Collection[bytes]) -> Iterator[bytes]:
    """Take what is in main or in processing off the delayed and buried zsets, and end its guard.

    Args:
        queue: The queue.
        ids: What looked so a grace period ago; few, because each is looked for in the lists.

    Yields:
        The IDs that were taken off.
    """
    if ids:
        length = sum(queue.call_all([("LLEN", queue.keys.main), ("LLEN", queue.keys.processing)]))
        for batch in in_batches(ids, items_max=max(1, ids_per_call(length) // 2)):
            words = ("1", b"", *batch)
            yield from queue.run("reschedule", *words)


def prune_cleaning_by_pages(
    queue: Queue, choose: Callable[[list[bytes]], Collection[bytes]]
) -> Iterator[bytes]:
    """Turn the list of 0.1 cleaners round once, and take entries off it.

    Args:
        queue: The queue.
        choose: Says which IDs of a page are to go.

    Yields:
        The ID of each entry that was taken off.
    """
    left = int(queue.call("LLEN", queue.keys.cleaning))
    while left > 0:
        page = queue.call("LRANGE", queue.keys.cleaning, -min(left, PAGE_SIZE), -1)
        if not page:
            return
        left -= len(page)
        yield from prune(queue, "cleaning", choose(page), page=len(page))


def _prune_cleaning(queue: Queue, ids: Sequence[bytes]) -> Iterator[bytes]:
    if len(ids) > FEW_IDS:
        sought = frozenset(ids)
        yield from prune_cleaning_by_pages(queue, sought.intersection)
    elif ids:
        length = int(queue.call("LLEN", queue.keys.cleaning))
        for batch in in_batches(ids, items_max=ids_per_call(length)):
            yield from prune(queue, "cleaning", batch)


def _still_stale(queue: Queue, ids: list[bytes]) -> list[bytes]:
    """Of entries of a 0.1 cleaner's list, those whose item is gone, or is in another list again."""
    if not ids:
        return []
    listed = listed_ids(queue, ids)
    return [
        item_id
        for item_id, look in zip(ids, probe(queue, ids), strict=True)
        if item_id in listed or not look.has_data
    ]


def _is_clean(found: Survey) -> bool:
    return not (
        found.orphaned
        or found.main_ghosts
        or found.duplicated
        or found.scheduled_ghosts
        or found.stale_cleaning
        or found.stale_schedule
        or found.stale_returns
    )


def _seen_twice(first: Survey, second: Survey) -> Iterator[CleanAction]:
    def both(one: list[bytes], other: list[bytes]) -> list[bytes]:
        again = set(other)
        return [item_id for item_id in dict.fromkeys(one) if item_id in again]

    for item_id in both(first.orphaned, second.orphaned):
        yield CleanAction(item_id, Repair.RETURNED, State.ORPHANED)
    for item_id in both(first.main_ghosts, second.main_ghosts):
        yield CleanAction(item_id, Repair.DROPPED, State.GHOST, "main")
    for item_id in both(first.duplicated, second.duplicated):
        yield CleanAction(item_id, Repair.DROPPED, State.DUPLICATED, "main")
    for item_id in both(first.stale_cleaning, second.stale_cleaning):
        yield CleanAction(item_id, Repair.PRUNED, State.GHOST, "cleaning")
    still_scheduled = {*second.stale_schedule, *second.scheduled_ghosts}
    for item_id, where in (*first.stale_schedule, *first.scheduled_ghosts):
        if (item_id, where) in still_scheduled:
            yield CleanAction(item_id, Repair.PRUNED, State.GHOST, where)
    for item_id in both(first.stale_returns, second.stale_returns):
        yield CleanAction(item_id, Repair.PRUNED, State.GHOST, "returns")
