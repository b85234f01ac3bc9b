"""Running an operation on any number of IDs, wherever they are in the lists.

IDs in short lists are looked up by the script itself. Otherwise the lists are read first, and the
script is told where the entries are. This affects only the speed: scripts check every place, and
report an ID that is not there any more, which is then looked for again.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rwq_cli.core.batches import (
    BATCH_ITEMS,
    BATCH_WRITES,
    BLOCK_IDS,
    FEW_IDS,
    LONGEST_LIST,
    SCAN_BUDGET_ENTRIES,
    Flush,
    in_batches,
)
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.places import places_of
from rwq_cli.core.inspect.second_look import look_twice
from rwq_cli.core.lua import script_words
from rwq_cli.core.model import Outcome, OutcomeBatch, Status
from rwq_cli.core.server.acknowledged import Acknowledged, in_doubt
from rwq_cli.core.server.commands import REFUSED
from rwq_cli.core.state.expected import ANY, Expected
from rwq_cli.core.state.located import Located
from rwq_cli.core.state.snapshot import (
    SNAPSHOT_ITEMS,
    ItemSnapshot,
    Skipped,
    read_snapshots,
)

# More than a few IDs are looked up by name only in short lists, to save the round trips of reading
# them: a script that is told the places is faster.
_SCANNED_MAX = 100_000
# How often the lists are read for IDs that move, before each of them is looked up by name.
_ROUNDS = 4
# The hint of a call whose reply was lost.
LOST_REPLY_HINT = "rwq show ID says what became of an item"


# Performs an operation on IDs, in order; an ID with `ELSEWHERE` is tried again.
Perform = Callable[[Iterable[Located]], Iterator[OutcomeBatch]]

# Runs an operation on IDs, given whether this is the first look at them: then it reports items that
# may be in transit as `IN_TRANSIT`, and leaves them alone.
Act = Callable[[Iterable[bytes | Flush], bool], Iterator[OutcomeBatch]]


class Operation(NamedTuple):
    """An operation on IDs.

    Attributes:
        script: Its script.
        args: Its own arguments, besides those of `Located` and `Expected`.
        doing: A description for a progress listener, such as `completing`.
        items_max: The maximum number of IDs in a call.
        expected: The conditions that the items must still meet; None if the script takes none.
    """

    script: str
    args: Mapping[str, object]
    doing: str
    items_max: int = BATCH_ITEMS
    expected: Expected | None = None


def apply(
    queue: Queue,
    operation: Operation,
    ids: Iterable[bytes | Flush],
    *,
    in_order: bool = False,
    dry_run: bool = False,
) -> Iterator[OutcomeBatch]:
    """Run an operation on a stream of IDs.

    Args:
        queue: The queue.
        operation: The operation.
        ids: The IDs, read in blocks.
        in_order: Each call puts its IDs in front of those of the previous call: read all IDs at
            once, and make the calls in reverse order.
        dry_run: Change nothing, and report what would be done.

    Raises:
        ServerError: `acknowledged` is the number of processed IDs.

    Yields:
        One outcome for each distinct ID of a block, as the server acknowledges it; in the given
        order if there are few. A block ends with a `FLUSH`, or after `BLOCK_IDS`: an ID that is
        repeated later may name a new item by then, so it is acted on again.
    """
    if dry_run:
        queue.connection.set_no_touch()

    def perform(calls: Iterable[Located]) -> Iterator[OutcomeBatch]:
        script, args = operation.script, operation.args
        return apply_to(queue, script, calls, args, operation.expected, dry_run=dry_run)

    return apply_with(
        queue, perform, ids, operation.doing, items_max=operation.items_max, in_order=in_order
    )


def apply_to(
    queue: Queue,
    script: str,
    calls: Iterable[Located],
    args: Mapping[str, object],
    expected: Expected | None,
    *,
    dry_run: bool = False,
) -> Iterator[OutcomeBatch]:
    """Run a script on IDs that have been looked up; see `Operation` and `send`."""
    named = {**args, **(expected.args() if expected is not None else {})}
    id_args = (expected or ANY).id_args

    def words(call: Located) -> Sequence[object]:
        return script_words(script, id_args(call.ids), **call.args(), **named)

    return send(queue, script, calls, words, dry_run=dry_run)


def send(
    queue: Queue,
    script: str,
    calls: Iterable[Located],
    words: Callable[[Located], Sequence[object]],
    *,
    dry_run: bool = False,
) -> Iterator[OutcomeBatch]:
    """Send calls of a script, ahead of their replies.

    Args:
        queue: The queue.
        script: The script.
        calls: The IDs of each call.
        words: The arguments of a call.
        dry_run: Change nothing, and report what would be done.

    Yields:
        The outcomes of each call, without those that were refused.
    """
    sent: list[Located] = []

    def each() -> Iterator[Sequence[object]]:
        for call in calls:
            if call.ids:
                sent.append(call)
                yield words(call)

    with in_doubt(lambda: sum(len(call.ids) for call in sent), LOST_REPLY_HINT):
        for reply in queue.run_each(script, each(), dry_run=dry_run):
            call = sent.pop(0)
            if reply is not REFUSED:
                yield OutcomeBatch.from_reply(call.ids, reply)


def apply_with(
    queue: Queue,
    perform: Perform,
    ids: Iterable[bytes | Flush],
    doing: str,
    *,
    items_max: int = BATCH_ITEMS,
    in_order: bool = False,
) -> Iterator[OutcomeBatch]:
    """Run an operation on a stream of IDs; see `apply`.

    Args:
        queue: The queue.
        perform: Performs it; it may send calls ahead of their replies.
        ids: The IDs, read in blocks.
        doing: See `Operation`.
        items_max: See `Operation`.
        in_order: See `apply`.
    """
    # Also if there are no IDs: an untagged name on a cluster must not look like an empty queue.
    queue.connection.check_one_slot()
    with Acknowledged() as acknowledged:
        for block in blocks_of(ids, all_at_once=in_order):
            for batch in in_rounds(queue, perform, block, doing, items_max, in_order=in_order):
                acknowledged.add(len(batch))
                queue.progress.advance(len(batch))
                yield batch


def in_rounds(
    queue: Queue,
    perform: Perform,
    ids: Iterable[bytes],
    doing: str,
    items_max: int,
    *,
    in_order: bool = False,
) -> Iterator[OutcomeBatch]:
    """Run an operation on some IDs until each has an outcome; see `apply_with`."""
    left = dict.fromkeys(ids)
    for number in range(_ROUNDS + 1):
        if not left:
            break
        calls = _calls(queue, list(left), items_max, number, doing, in_order=in_order)
        for batch in perform(reversed(list(calls)) if in_order else calls):
            known = batch.located()
            for item_id in known.ids:
                left.pop(item_id, None)
            if len(known):
                yield known


def _calls(
    queue: Queue,
    ids: list[bytes],
    items_max: int,
    number: int,
    doing: str = "",
    *,
    in_order: bool = False,
) -> Iterator[Located]:
    """The calls of a round for some IDs; the first round has number 0."""
    if doing:
        queue.progress.begin(doing, len(ids))
    if number == _ROUNDS:
        # They have moved all the time, which hardly ever happens.
        return (Located.by_name([item_id], scan_max=LONGEST_LIST) for item_id in ids)
    if number == 0 and len(ids) <= items_max:
        scan_max = SCAN_BUDGET_ENTRIES if len(ids) <= FEW_IDS else _SCANNED_MAX
        return iter([Located.by_name(ids, scan_max=scan_max)])
    return _seen_in_lists(queue, ids, items_max, doing, in_order=in_order)


def _seen_in_lists(
    queue: Queue, ids: Collection[bytes], items_max: int, doing: str, *, in_order: bool
) -> Iterator[Located]:
    """Look for IDs in both lists. Unless they are to stay in order, those in main come first, next
    to be leased first; then those in processing, longest leased first; then the others.
    """
    keys = queue.keys
    since_ms = queue.now_ms()
    # An item that is returned while the lists are read must not seem to be in neither.
    main, processing = places_of(queue, ids, main_twice=True)
    if doing:
        queue.progress.begin(doing, len(ids))
    lengths = queue.call_all([("LLEN", key) for key in (keys.main, keys.processing)])
    ordered: Iterable[bytes] = ids
    if not in_order:
        ordered = [
            *sorted(main, key=lambda item_id: main[item_id][0]),
            *sorted(processing.keys() - main.keys(), key=lambda item_id: processing[item_id][0]),
            *(item_id for item_id in ids if item_id not in main and item_id not in processing),
        ]

    def seen(item_id: bytes) -> str:
        # Counted from the right end, places would change with every call that removes entries.
        return ",".join(
            f"{letter}{max(0, length - 1 - place)}"
            for letter, length, found in zip("mp", lengths, (main, processing), strict=True)
            for place in found.get(item_id, ())
        )

    # In the middle of a long list, each place takes a script as long as a write.
    for batch in in_batches(ordered, items_max=min(items_max, BATCH_WRITES)):
        yield Located.at_places(batch, list(map(seen, batch)), since_ms)


def ways_to_find(queue: Queue, ids: list[bytes]) -> Iterator[Located]:
    """Calls to try one after the other until a script finds some IDs, which are few."""
    for number in range(_ROUNDS + 1):
        yield from _calls(queue, ids, BATCH_ITEMS, number, in_order=True)


def read_items(
    queue: Queue, ids: Collection[bytes], skipped: Skipped
) -> Iterator[list[ItemSnapshot]]:
    """Read items wherever they are.

    Args:
        queue: The queue.
        ids: The IDs.
        skipped: Collects the IDs without a snapshot.

    Yields:
        Non-empty lists, each read at one instant; in the given order if there are few.
    """
    left = list(dict.fromkeys(ids))
    for number in range(_ROUNDS + 1):
        if not left:
            break
        skipped.elsewhere = []
        calls = _calls(queue, left, SNAPSHOT_ITEMS, number)
        for _, items in read_snapshots(queue, calls, skipped):
            if items:
                yield items
        left, skipped.elsewhere = skipped.elsewhere, []


def act_after_second_look(
    queue: Queue,
    act: Act,
    ids: Iterable[bytes | Flush],
    *,
    expected: Expected,
    grace_s: float,
    all_at_once: bool = False,
) -> Iterator[OutcomeBatch]:
    """Run an operation that takes items from their workers.

    An item that looks abandoned or orphaned may be between a worker's pop and its lease. The
    operation acts on it only if it looks the same a grace period later, after the other items.

    Args:
        queue: The queue.
        act: The operation.
        ids: The IDs, read in blocks.
        expected: The conditions that the items must still meet, with those that were looked at
            twice when they were chosen.
        grace_s: Seconds between the two looks, once for each block of IDs, and only if needed.
        all_at_once: Read all IDs at once.

    Yields:
        One outcome for each distinct ID of a block.
    """
    looked_twice = expected.looked_twice
    with Acknowledged() as acknowledged:
        for block in blocks_of(ids, all_at_once=all_at_once):
            ready = [item_id for item_id in block if item_id in looked_twice]
            fresh = [item_id for item_id in block if item_id not in looked_twice]
            in_transit: list[bytes] = []
            for batch in act(fresh, True) if fresh else ():
                found = batch.ids_with(Status.IN_TRANSIT)
                in_transit += found
                rest = batch.only(set(batch.ids).difference(found)) if found else batch
                acknowledged.add(len(rest))
                if len(rest):
                    yield rest
            if in_transit:
                # If one now has a lease or no data, the script reports that.
                same = {facts.item_id for facts in look_twice(queue, in_transit, grace_s)}
                others = [Outcome(i, Status.CHANGED) for i in in_transit if i not in same]
                acknowledged.add(len(others))
                if others:
                    yield OutcomeBatch.of(others)
                ready += [item_id for item_id in in_transit if item_id in same]
            for batch in act(ready, False) if ready else ():
                acknowledged.add(len(batch))
                yield batch


def blocks_of(ids: Iterable[bytes | Flush], *, all_at_once: bool) -> Iterator[list[bytes]]:
    """Split a stream of IDs into blocks; a `FLUSH` ends a block, unless all are read at once."""
    if all_at_once:
        return iter([[item_id for item_id in ids if not isinstance(item_id, Flush)]])
    return in_batches(ids, items_max=BLOCK_IDS)
