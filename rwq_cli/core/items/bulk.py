"""Running a script on any number of IDs, wherever they are in the lists.

A few IDs are looked up by the script itself. For more, the lists are read first, and the script is
told where the entries are. This affects only the speed: scripts check every place, and report an ID
that is not there any more, which is then looked for again.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from rwq_cli.core.batches import (
    BATCH_PLACES,
    BATCH_WRITES,
    BLOCK_IDS,
    FEW_IDS,
    LONGEST_LIST,
    SCAN_BUDGET_ENTRIES,
    Flush,
    in_batches,
)
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.lookup import look_twice, places_of
from rwq_cli.core.lua import script_words
from rwq_cli.core.model import Outcome, OutcomeBatch, Status
from rwq_cli.core.server.acknowledged import Acknowledged, in_doubt
from rwq_cli.core.server.commands import REFUSED
from rwq_cli.core.state.expected import ANY, Expected
from rwq_cli.core.state.located import Located
from rwq_cli.core.state.snapshot import ItemSnapshot, Skipped, read_snapshots

# More than a few IDs are looked up by name only in short lists, to save the round trips of reading
# them: a script that is told the places is faster.
_SCANNED_MAX = 100_000
# Passing over so many entries takes a script as long as anything else that it does for an ID.
_SEEK_ENTRIES = 62_500
# How often the lists are read for IDs that move, before each of them is looked up by name.
_ROUNDS = 4
# The hint of a call whose reply was lost.
LOST_REPLY_HINT = "rwq show ID says what became of an item"

# Acts on the IDs of calls, in order, given whether this is the first look at them: then items that
# may be in transit are left alone, as `IN_TRANSIT`. An ID with `ELSEWHERE` is tried again.
Act = Callable[[Iterable[Located], bool], Iterator[OutcomeBatch]]
# The arguments of a script, besides those of `Located` and `Expected`; perhaps for these IDs.
Args = Mapping[str, object] | Callable[[Sequence[bytes]], Mapping[str, object]]


def by_script(
    queue: Queue,
    script: str,
    args: Args,
    expected: Expected = ANY,
    *,
    dry_run: bool = False,
) -> Act:
    """What acts by a script, which is told whether this is the first look if it takes that."""
    if dry_run:
        # Before the lists are read.
        queue.connection.set_no_touch()

    def words(call: Located, is_first_look: bool) -> Sequence[object]:
        known = expected if call.saved is None else expected._replace(fingerprints=call.saved)
        named = {**call.args(), **known.args(), **(args(call.ids) if callable(args) else args)}
        if "is_first_look" in named:
            named["is_first_look"] = is_first_look
        return script_words(script, known.id_args(call.ids), **named)

    def act(calls: Iterable[Located], is_first_look: bool) -> Iterator[OutcomeBatch]:
        sent: deque[Located] = deque()

        def each() -> Iterator[Sequence[object]]:
            for call in calls:
                if call.ids:
                    sent.append(call)
                    yield words(call, is_first_look)

        with in_doubt(lambda: sum(len(call.ids) for call in sent), LOST_REPLY_HINT):
            for reply in queue.run_each(script, each(), dry_run=dry_run):
                call = sent.popleft()
                if reply is not REFUSED:
                    yield OutcomeBatch.from_reply(call.ids, reply)

    return act


def run(
    queue: Queue,
    act: Act,
    ids: Iterable[bytes | Flush],
    doing: str,
    *,
    items_max: int | None = None,
    in_order: bool = False,
    grace_s: float | None = None,
    looked_twice: Collection[bytes] = (),
) -> Iterator[OutcomeBatch]:
    """Act on a stream of IDs.

    Args:
        queue: The queue.
        act: Acts on them; it may send calls ahead of their replies.
        ids: The IDs, read in blocks.
        doing: What a progress listener shows, such as `completing`.
        items_max: The maximum number of IDs in a call; None for the usual.
        in_order: Each call puts its IDs in front of those of the previous call: read all IDs at
            once, and make the calls in reverse order.
        grace_s: For what takes items from their workers, the seconds between two looks at those
            that may be in transit; None for no second look.
        looked_twice: The IDs that were looked at twice when they were chosen.

    Raises:
        ServerError: `acknowledged` is the number of processed IDs.

    Yields:
        One outcome for each distinct ID of a block, as the server acknowledges it; in the given
        order if there are few. A block ends with a `FLUSH`, or after `BLOCK_IDS`: an ID that is
        repeated later may name a new item by then, so it is acted on again.
    """
    # Also if there are no IDs: an untagged name on a cluster must not look like an empty queue.
    queue.connection.check_one_slot()
    blocks: Iterable[list[bytes]] = in_batches(ids, items_max=BLOCK_IDS)
    if in_order:
        blocks = [[item_id for item_id in ids if not isinstance(item_id, Flush)]]
    with Acknowledged() as acknowledged:
        for block in blocks:
            batches = (
                in_rounds(queue, act, block, doing, items_max=items_max, in_order=in_order)
                if grace_s is None
                else _in_two_looks(queue, act, block, doing, looked_twice, grace_s, in_order)
            )
            for batch in batches:
                acknowledged.add(len(batch))
                queue.progress.advance(len(batch))
                yield batch


def _in_two_looks(
    queue: Queue,
    act: Act,
    ids: Sequence[bytes],
    doing: str,
    looked_twice: Collection[bytes],
    grace_s: float,
    in_order: bool,
) -> Iterator[OutcomeBatch]:
    """Act on IDs, and a grace period later on those that looked as if they were in transit.

    An item that looks abandoned or orphaned may be between a worker's pop and its lease.
    """
    ready = [item_id for item_id in ids if item_id in looked_twice]
    fresh = [item_id for item_id in ids if item_id not in looked_twice]
    in_transit: list[bytes] = []
    for batch in in_rounds(queue, act, fresh, doing, in_order=in_order, is_first_look=True):
        found = batch.ids_with(Status.IN_TRANSIT)
        in_transit += found
        rest = batch.only(set(batch.ids).difference(found)) if found else batch
        if len(rest):
            yield rest
    if in_transit:
        # If one now has a lease or no data, the script reports that.
        same = {facts.item_id for facts in look_twice(queue, in_transit, grace_s)}
        if others := [Outcome(i, Status.CHANGED) for i in in_transit if i not in same]:
            yield OutcomeBatch.of(others)
        ready += [item_id for item_id in in_transit if item_id in same]
    yield from in_rounds(queue, act, ready, doing, in_order=in_order)


def in_rounds(
    queue: Queue,
    act: Act,
    ids: Iterable[bytes],
    doing: str,
    *,
    items_max: int | None = None,
    in_order: bool = False,
    is_first_look: bool = False,
) -> Iterator[OutcomeBatch]:
    """Act on some IDs until each has an outcome."""
    left = dict.fromkeys(ids)
    for number in range(_ROUNDS + 1):
        if not left:
            break
        calls = _calls(queue, list(left), number, doing, items_max, in_order=in_order)
        for batch in act(reversed(list(calls)) if in_order else calls, is_first_look):
            known = batch.located()
            for item_id in known.ids:
                left.pop(item_id, None)
            if len(known):
                yield known


def _calls(
    queue: Queue,
    ids: list[bytes],
    number: int,
    doing: str = "",
    items_max: int | None = None,
    *,
    in_order: bool = False,
) -> Iterator[Located]:
    """The calls of a round for some IDs; the first round has number 0."""
    items_max = items_max or BATCH_PLACES
    if doing:
        queue.progress.begin(doing, len(ids))
    if number == _ROUNDS:
        # They have moved all the time, which hardly ever happens.
        return (Located.by_name([item_id], scan_max=LONGEST_LIST) for item_id in ids)
    if number == 0 and len(ids) <= min(BATCH_WRITES, items_max):
        scan_max = SCAN_BUDGET_ENTRIES if len(ids) <= FEW_IDS else _SCANNED_MAX
        return iter([Located.by_name(ids, scan_max=scan_max)])
    return _seen_in_lists(queue, ids, doing, items_max, in_order=in_order)


def _seen_in_lists(
    queue: Queue, ids: Collection[bytes], doing: str, items_max: int, *, in_order: bool
) -> Iterator[Located]:
    """Look for IDs in both lists. Unless they are to stay in order, those in main come first, next
    to be leased first; then those in processing, longest leased first; then the others.
    """
    since_ms = queue.now_ms()
    # An item that is returned while the lists are read must not seem to be in neither.
    main, processing = places_of(queue, ids, main_twice=True)
    if doing:
        queue.progress.begin(doing, len(ids))
    lists = (queue.keys.main, queue.keys.processing)
    lengths = queue.call_all([("LLEN", key) for key in lists])
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

    last = 0

    def effort(item_id: bytes) -> int:
        nonlocal last
        result = 1
        for length, found in zip(lengths, (main, processing), strict=True):
            for place in found.get(item_id, ()):
                # Adjacent entries are read together.
                result += min(place, length - place) // _SEEK_ENTRIES + (abs(place - last) > 1)
                last = place
        return result

    for batch in in_batches(ordered, items_max=items_max, size_max=items_max, size_of=effort):
        yield Located.at_places(batch, list(map(seen, batch)), since_ms)


def ways_to_find(queue: Queue, ids: list[bytes]) -> Iterator[Located]:
    """Calls to try one after the other until a script finds some IDs, which are few."""
    for number in range(_ROUNDS + 1):
        yield from _calls(queue, ids, number, in_order=True)


def read_items(
    queue: Queue, ids: Collection[bytes], skipped: Skipped
) -> Iterator[list[ItemSnapshot]]:
    """Read items wherever they are; yields non-empty lists, each read at one instant, in the given
    order if there are few."""
    left = list(dict.fromkeys(ids))
    for number in range(_ROUNDS + 1):
        if not left:
            break
        skipped.elsewhere = []
        for _, items in read_snapshots(queue, _calls(queue, left, number), skipped):
            if items:
                yield items
        left, skipped.elsewhere = skipped.elsewhere, []
