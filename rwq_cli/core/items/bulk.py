"""Running a script on any number of IDs, wherever they are in the lists.

A few IDs are looked up by the script itself. For more, the lists are read first, and the script is
told where the entries are. This affects only the speed: scripts check every place, and report an ID
that is not there any more, which is then looked for again. What is removed, replaced or moved is
written to a journal before.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from rwq_cli.core.batches import (
    BLOCK_IDS,
    BUDGET,
    FEW_IDS,
    LONGEST_LIST,
    Budget,
    Flush,
    acknowledged,
    in_batches,
)
from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.lookup import Places, look_twice, places_of
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.model import OutcomeBatch, Status
from rwq_cli.core.server.commands import Command
from rwq_cli.core.state.expected import ANY, Expected, Located, hashed_bytes, with_data
from rwq_cli.core.state.snapshots import End, ItemSnapshot, Skipped, read_snapshots

# So many IDs are looked up by name if they are found so in short lists.
_NAMED_IDS = 250
# More than a few IDs are looked up by name only in short lists, to save the round trips of reading
# them: a script that is told the places is faster.
SCANNED_MAX = 100_000
# How often the lists are read for IDs that move, before each of them is looked up by name.
_ROUNDS = 4

# Acts on the IDs of calls, in order. An ID with `ELSEWHERE` is tried again.
Act = Callable[[Iterable[Located]], Iterator[OutcomeBatch]]
# The arguments of a script, besides those of `Located` and `Expected`; perhaps for these IDs.
Args = Mapping[str, object] | Callable[[Sequence[bytes]], Mapping[str, object]]


def by_script(
    queue: Queue,
    script: str,
    args: Args,
    expected: Expected = ANY,
    journal: "Journal | None" = None,
    *,
    bytes_each: int = 0,
    dry_run: bool = False,
    **saves: Any,
) -> Act:
    """Return what acts by a script, in calls within its budget; it writes `bytes_each` for each
    item. With a journal, the items are read and written to it first: see `saving`, also for
    `saves`."""
    if journal is not None and not dry_run:
        unsaved = by_script(queue, script, args, once_read(queue, expected), bytes_each=bytes_each)
        return saving(queue, journal, unsaved, expected, **saves)
    if dry_run:
        # Before the lists are read.
        queue.connection.set_no_touch()

    budget = queue.budget(script)

    def requests(call: Located) -> Iterator[tuple[Sequence[bytes], Command]]:
        conditions = expected if call.saved is None else expected._replace(tokens=call.saved)
        tokens = conditions.tokens or {}

        def bytes_of(item_id: bytes) -> int:
            return bytes_each + hashed_bytes(tokens.get(item_id, b""))

        for part in call.within(budget, bytes_of if bytes_each or tokens else None):
            script_args = args(part.ids) if callable(args) else args
            by_name = {**part.args(), **conditions.args(), **script_args}
            if part.looked_twice is not None:
                flags = ("01"[item_id not in part.looked_twice] for item_id in part.ids)
                by_name["is_first_look"] = "".join(flags)
            words = conditions.id_args(part.ids)
            yield part.ids, queue.script(script, *words, dry_run=dry_run, **by_name)

    def act(calls: Iterable[Located]) -> Iterator[OutcomeBatch]:
        return queue.act_each(chain.from_iterable(map(requests, calls)))

    return act


def run(
    queue: Queue,
    act: Act,
    ids: Iterable[bytes | Flush],
    doing: str,
    expected: Expected = ANY,
    *,
    look: Act | None = None,
    grace_s: float | None = None,
) -> Iterator[OutcomeBatch]:
    """Act on a stream of IDs: one outcome for each distinct ID of a block, in the given order if
    there are few.

    A block ends with a `FLUSH`, or after `BLOCK_IDS`: an ID that is repeated later may name a new
    item by then. What takes items from their workers has a grace period between two looks at those
    that may be in transit, but for those that were already looked at twice when they were chosen.
    With `look`, a dry run of the same, all IDs are read at once, and acted on in their order after
    that.
    """
    # Also if there are no IDs: an untagged name on a cluster must not look like an empty queue.
    queue.check_one_slot()
    blocks: Iterable[list[bytes]] = in_batches(ids, items_max=BLOCK_IDS)
    if look is not None:
        blocks = [[item_id for item_id in ids if not isinstance(item_id, Flush)]]

    attempt = partial(in_rounds, queue, doing=doing, in_order=look is not None)

    def act_on(block: Sequence[bytes]) -> Iterator[OutcomeBatch]:
        if grace_s is None:
            yield from attempt(act, block)
            return
        looked_twice, in_transit = set(expected.looked_twice), list[bytes]()
        for batch in attempt(look or act, block, looked_twice=looked_twice):
            in_transit += batch.ids_with(Status.IN_TRANSIT)
            if look is None:
                yield batch.without(Status.IN_TRANSIT)
        # If one now has a lease or no data, the script reports that.
        second_look = look_twice(queue, in_transit, grace_s) if in_transit else ()
        looked_twice.update(facts.item_id for facts in second_look)
        changed = {item_id: None for item_id in in_transit if item_id not in looked_twice}
        yield OutcomeBatch.all_of(list(changed), Status.CHANGED)
        pending = [i for i in (in_transit if look is None else block) if i not in changed]
        for batch in attempt(act, pending, looked_twice=looked_twice):
            yield batch.without(Status.IN_TRANSIT)
            # Only since that look.
            yield OutcomeBatch.all_of(batch.ids_with(Status.IN_TRANSIT), Status.CHANGED)

    batches = (batch for block in blocks for batch in act_on(block))
    yield from acknowledged(queue.progress, filter(len, batches))


def in_rounds(
    queue: Queue,
    act: Act,
    ids: Iterable[bytes],
    doing: str = "",
    *,
    in_order: bool = False,
    looked_twice: Collection[bytes] | None = None,
    seen: "Seen | None" = None,
) -> Iterator[OutcomeBatch]:
    """Act on some IDs until each has an outcome; see `Located` for `looked_twice`."""
    pending = dict.fromkeys(ids)
    for calls in rounds(queue, pending, doing, in_order=in_order, seen=seen):
        calls = [call._replace(looked_twice=looked_twice) for call in calls]
        for batch in act(calls):
            batch = batch.without(Status.ELSEWHERE)
            for item_id in batch.ids:
                pending.pop(item_id, None)
            if len(batch):
                yield batch


class Seen(NamedTuple):
    """Where entries were seen in both lists; what those had for lengths, and the time in unix ms,
    before."""

    places: Places
    lengths: tuple[int, int]
    since_ms: int

    @classmethod
    def read(cls, queue: Queue, ids: Collection[bytes]) -> "Seen":
        """Read both lists for these IDs."""
        since_ms = queue.now_ms()
        # An item that is returned while the lists are read must not seem to be in neither.
        places = places_of(queue, ids)
        lists = queue.keys.main, queue.keys.processing
        main, processing = queue.call_all([("LLEN", key) for key in lists])
        return cls(places, (main, processing), since_ms)

    def call(self, ids: Collection[bytes], *, in_order: bool) -> Located:
        """The call for IDs: those that have places, and others, which are in no list.

        Unless they are to stay in order, those in main come first, next to be leased first; then
        those in processing, longest leased first.
        """
        if not in_order:
            # One walk may serve several calls.
            listed = (
                sorted(filter(by_id.__contains__, ids), key=by_id.__getitem__)
                for by_id in self.places
            )
            ids = dict.fromkeys(chain(*listed, ids))
        main, processing = (
            [by_id.get(item_id, ()) for item_id in ids] if by_id else () for by_id in self.places
        )
        return Located(list(ids), "windows", (main, processing), self.since_ms, self.lengths)


def rounds(
    queue: Queue,
    pending: Mapping[bytes, object],
    doing: str = "",
    *,
    in_order: bool = True,
    seen: Seen | None = None,
) -> Iterator[list[Located]]:
    """Calls for pending IDs, again and again until the caller has removed all of them."""
    for number in range(_ROUNDS + 1):
        if not pending:
            return
        ids = list(pending)
        if doing:
            queue.progress.begin(doing, len(ids))
        if number == _ROUNDS:
            # They have moved all the time, which hardly ever happens.
            yield [Located([item_id], scan_max=LONGEST_LIST) for item_id in ids]
        elif number == 0 and seen is None and len(ids) <= _NAMED_IDS:
            scan_max = BUDGET.entries if len(ids) <= FEW_IDS else SCANNED_MAX
            yield [Located(ids, scan_max=scan_max)]
        else:
            if seen is None:
                seen = Seen.read(queue, ids)
                if doing:
                    queue.progress.begin(doing, len(ids))
            yield [seen.call(ids, in_order=in_order)]
            seen = None


def read_items(
    queue: Queue, ids: Iterable[bytes], skipped: Skipped, seen: Seen | None = None
) -> Iterator[list[ItemSnapshot]]:
    """Read items wherever they are, each list at one instant; in their order if there are few."""
    pending = dict.fromkeys(ids)
    for calls in rounds(queue, pending, in_order=False, seen=seen):
        skipped.elsewhere = []
        for _, items in read_snapshots(queue, calls, skipped):
            if items:
                yield items
        pending.clear()
        pending.update(dict.fromkeys(skipped.elsewhere))
    skipped.elsewhere = []


# Calls whose items are written at once, and which are then sent together.
GROUP_CALLS = 24
_REMOVING = (Status.REMOVED, Status.MOVED, Status.COMPLETED)
# Matches no data.
_OTHER_DATA = b"0:0"


class Journal:
    """A file to which items are written, durably, before they are removed or replaced.

    `replaced_by` says for each item or result what replaces it: the SHA-256 of the new data, in
    hexadecimal, or the completion time of the new result. Without it, they are removed.
    """

    def write(
        self, entries: Sequence[ItemSnapshot | Result], replaced_by: Sequence[str] = ()
    ) -> None:
        """Write items or results; raise if that fails."""

    def record_removed_except(self, kept: Sequence[bytes]) -> None:
        """Record that all items written so far were removed or replaced, except these."""


def recorded(
    queue: Queue,
    journal: Journal | None,
    items: Sequence[ItemSnapshot],
    outcomes: Iterable[OutcomeBatch],
    *removing: Status,
    replaced_by: Sequence[str] = (),
) -> Iterator[OutcomeBatch]:
    """Write items to a journal, act on them by reading the outcomes, and record which have one of
    the statuses that tell of a removal or replacement."""
    if journal is None or not items:
        yield from outcomes
        return
    journal.write(items, replaced_by)
    kept, acknowledged_batches = {item.item_id: None for item in items}, list[OutcomeBatch]()
    try:
        for batch in outcomes:
            acknowledged_batches.append(batch)
            for item_id in batch.ids_with(*removing):
                kept.pop(item_id, None)
    except (ServerError, KeyboardInterrupt) as error:
        # What is in doubt may have been taken. An interrupt that was asked for came after all
        # replies: what is left was not sent.
        is_sure = queue.connection.stop.requested
        if not error.in_doubt if isinstance(error, ServerError) else is_sure:
            journal.record_removed_except(list(kept))
            yield from acknowledged_batches
        raise
    journal.record_removed_except(list(kept))
    yield from acknowledged_batches


def once_read(queue: Queue, expected: Expected) -> Expected:
    """The conditions for items that are read first, where that resets their ages."""
    return expected if queue.connection.set_no_touch() else expected._replace(age_s=None)


def saving(
    queue: Queue,
    journal: Journal | None,
    act: Act,
    expected: Expected = ANY,
    *,
    keeps_leased: bool = False,
    as_saved: Callable[[ItemSnapshot], ItemSnapshot] = lambda item: item,
) -> Act:
    """Return what reads items, and writes them to a journal, before it acts by another `Act`.

    An item that differs from what was read is `CHANGED`. With `keeps_leased`, leased items are left
    alone, and not saved. `as_saved` gives the state in which an item is to be restored.
    """
    # Whether a walk over main is nearer to the end of the queue.
    is_past_middle = False

    def both(calls: Iterable[Located]) -> Iterator[OutcomeBatch]:
        limit = Budget(items=GROUP_CALLS, bytes=4 * BUDGET.bytes)
        reads = read_snapshots(queue, calls, Skipped())
        for group in limit.split(reads, lambda read: sum(len(item.data) for item in read[1])):
            saved: list[Located] = []
            items: list[ItemSnapshot] = []
            for call, read in group:
                tokens = {item.item_id: token_to_save(item) for item in read}
                kept = [item for item in read if tokens[item.item_id] not in (None, _OTHER_DATA)]
                items += map(as_saved, in_their_order(call, kept))
                compared = {item_id: token for item_id, token in tokens.items() if token}
                saved.append(call._replace(saved=compared, read=kept))
            yield from recorded(queue, journal, items, act(saved), *_REMOVING)

    def token_to_save(item: ItemSnapshot) -> bytes | None:
        """The token of an item that is to be saved; None if it is to be left alone."""
        tokens = expected.tokens
        chosen_by = b"" if tokens is None else tokens.get(item.item_id, _OTHER_DATA)
        token = with_data(chosen_by, item.data)
        if token is None:
            return _OTHER_DATA
        return None if keeps_leased and item.lease else token

    def in_their_order(call: Located, items: list[ItemSnapshot]) -> list[ItemSnapshot]:
        """The items, those of main in their order; once one is nearer to the end, so are all that
        follow it. Removed items shift the middle of main during a walk.
        """
        nonlocal is_past_middle
        if call.search != "windows":
            return sorted(items, key=lambda i: -1 if i.position is None else i.position)
        if is_past_middle:
            items = [i._replace(nearer=End.LAST) if i.nearer is End.NEXT else i for i in items]
        is_past_middle |= any(item.nearer is End.LAST for item in items)
        return items

    return both
