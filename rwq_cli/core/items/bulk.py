"""Running an operation on any number of IDs, wherever they are in the lists.

A few IDs are looked up by name, each in both whole lists. For more, both lists are read once; then
the operation acts on pages of processing, on pages of main, and on batches of IDs in no list. This
affects only the speed: the scripts check every place again, and report an ID that has moved, which
is then tried again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from os import urandom
from typing import NamedTuple

from rwq_cli.core.batches import BATCH_ITEMS, BLOCK_IDS, FEW_IDS, Flush, ids_per_call, in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import ListCursor, lengths_of
from rwq_cli.core.inspect.places import Places, places_of
from rwq_cli.core.inspect.second_look import look_twice
from rwq_cli.core.keys import CLAIM_MS, CLAIM_PREFIX
from rwq_cli.core.model import Outcome, OutcomeBatch, Status
from rwq_cli.core.server.acknowledged import Acknowledged, in_doubt
from rwq_cli.core.server.commands import REFUSED
from rwq_cli.core.state.expected import ANY, Expected
from rwq_cli.core.state.list_range import ListRange, Where

# How many walks over the lists look for IDs, before they are looked up by name.
_WALKS = 3
# Pages of processing that are read ahead.
_WINDOW_PAGES = 8
# With smaller pages, rotating the list costs more than looking up each ID.
_PAGE_MIN = 50
# An ID may be missed in its page this often before it is looked up in another way.
_MISSES_MAX = 5
# Entries of main that are read at once, and IDs among them for one call, which scans at most half
# of the list.
MAIN_PAGE_ENTRIES = 4000
_MAIN_PAGE_IDS = 250
# The hint of a call whose reply was lost.
LOST_REPLY_HINT = "rwq show ID says what became of an item"
_CLAIM_IDS = BATCH_ITEMS // 4


# Performs an operation on ranges, in order; an ID with `ELSEWHERE` is tried again.
Perform = Callable[[Iterable[ListRange]], Iterator[OutcomeBatch]]

# Runs an operation on IDs, given whether this is the first look at them: then it reports items that
# may be in transit as `IN_TRANSIT`, and leaves them alone.
Act = Callable[[Iterable[bytes | Flush], bool], Iterator[OutcomeBatch]]

# The statuses of IDs whose list entries were removed.
_DELISTED = frozenset(
    {
        *(Status.ALREADY_BURIED, Status.BURIED, Status.COMPLETED, Status.DELAYED, Status.DROPPED),
        *(Status.KICKED, Status.MISSING, Status.MOVED, Status.PROMOTED, Status.RELEASED),
        *(Status.REMOVED, Status.RETURNED),
    }
)
# Those of an operation that pushes: it leaves the entries of ghosts alone.
_DELISTED_IF_PUSHED = _DELISTED - {Status.MISSING}


class Operation(NamedTuple):
    """An operation on IDs.

    Attributes:
        script: Its script, which takes the arguments of a `ListRange` first.
        args: Its own arguments before the IDs.
        doing: A description for a progress listener, such as `completing`.
        pushes: Whether it pushes IDs that are in no list. Such IDs without a lease or guard are
            claimed before the lists are read for the last time, so that no cleaner pushes them.
        claims_first: Whether the caller knows that none of them has a lease or guard.
        items_max: The maximum number of IDs in a call.
        expected: The conditions that the items must still meet; None if the script takes none.
    """

    script: str
    args: Sequence[object]
    doing: str
    pushes: bool = False
    claims_first: bool = False
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
            once, look up each by name, and make the calls in reverse order.
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
    token = new_token()
    expected = operation.expected
    expected_args = () if expected is None else expected.args()
    id_args = (expected or ANY).id_args

    def perform(ranges: Iterable[ListRange]) -> Iterator[OutcomeBatch]:
        sent: list[ListRange] = []

        def calls() -> Iterator[Sequence[object]]:
            for each in ranges:
                sent.append(each)
                yield (*each.args(token), *expected_args, *operation.args, *id_args(each.ids))

        with in_doubt(lambda: sum(len(each.ids) for each in sent), LOST_REPLY_HINT):
            for reply in queue.run_each(operation.script, calls(), dry_run=dry_run):
                acknowledged = sent.pop(0)
                if reply is not REFUSED:
                    yield OutcomeBatch.from_reply(acknowledged.ids, reply)

    run = BulkRun(
        queue,
        perform,
        token,
        doing=operation.doing,
        pushes=operation.pushes,
        claims_first=operation.claims_first,
        items_max=operation.items_max,
        dry_run=dry_run,
    )
    return run.apply(ids, in_order=in_order)


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


def new_token() -> bytes:
    """A value that is never an ID: a temporary list entry in scripts, and the suffix of claims."""
    return b"rwq-token:" + urandom(16).hex().encode()


class BulkRun:
    """One run over any number of IDs.

    Args:
        queue: The queue.
        perform: Performs the operation on ranges; it may send calls ahead of their replies.
        token: The value that `perform` passes to its script.
        doing: See `Operation`.
        pushes: See `Operation`.
        claims_first: See `Operation`.
        items_max: See `Operation`.
        dry_run: Nothing is changed.
    """

    def __init__(
        self,
        queue: Queue,
        perform: Perform,
        token: bytes,
        *,
        doing: str,
        pushes: bool = False,
        claims_first: bool = False,
        items_max: int = BATCH_ITEMS,
        dry_run: bool = False,
    ) -> None:
        self._queue = queue
        self._perform = perform
        self._claim = CLAIM_PREFIX + token
        self._doing = doing
        self._pushes = pushes
        self._delisted = _DELISTED_IF_PUSHED if pushes else _DELISTED
        self._claims_first = claims_first
        self._items_max = items_max
        self._dry_run = dry_run

    def apply(
        self, ids: Iterable[bytes | Flush], *, in_order: bool = False
    ) -> Iterator[OutcomeBatch]:
        """Run the operation on a stream of IDs; see `apply`."""
        with Acknowledged() as acknowledged:
            for batch in self.outcomes(ids, in_order=in_order):
                acknowledged.add(len(batch))
                self._queue.progress.advance(len(batch))
                yield batch

    def outcomes(
        self, ids: Iterable[bytes | Flush], *, in_order: bool = False
    ) -> Iterator[OutcomeBatch]:
        """The same, for a caller that counts the outcomes."""
        for block in blocks_of(ids, all_at_once=in_order):
            left = dict.fromkeys(block)
            if in_order:
                yield from self._by_name(list(left), reverse=True)
            else:
                yield from self._apply(left)

    def _apply(self, left: dict[bytes, None]) -> Iterator[OutcomeBatch]:
        queue = self._queue
        for _ in range(_WALKS):
            if len(left) <= FEW_IDS:
                break
            entries = lengths_of(queue, queue.keys.main, queue.keys.processing)
            queue.progress.begin("reading the lists", entries)
            places = places_of(queue, left.keys())
            queue.progress.begin(self._doing, len(left))
            before = len(left)
            for batch in self._apply_by_places(left.keys(), places):
                # Ignore a second entry of an ID that was done.
                known = batch.located().only(left.keys())
                for item_id in known.ids:
                    del left[item_id]
                if len(known):
                    yield known
            # IDs that are in the lists several times are looked up by name.
            if len(left) == before or left.keys() <= places.several:
                break
        queue.progress.begin(self._doing, len(left))
        yield from self._by_name(list(left))

    def _apply_by_places(self, left: Set[bytes], places: Places) -> Iterator[OutcomeBatch]:
        main, processing, several = places.main.keys(), places.processing.keys(), places.several
        if self._items_max >= _PAGE_MIN:
            yield from self.apply_to_processing(processing - several)
        yield from self._in_main(main - several)
        yield from self._unlisted([i for i in left if i not in main and i not in processing])

    def apply_to_processing(self, wanted: Set[bytes]) -> Iterator[OutcomeBatch]:
        """Act on IDs that are in processing, page by page, rotating the list until all are done.

        The script pops the pages that were read here, unless other clients removed entries in
        between; then some IDs are missed, and found again later in the rotation. It ends when all
        are done, or when a whole rotation found none: the remaining IDs are no longer in the list,
        or other clients kept rotating them away.
        """
        queue, size = self._queue, self._items_max
        left = set(wanted)
        length = int(queue.call("LLEN", queue.keys.processing)) if left else 0
        alone, fruitless, skipped = True, 0.0, 0
        while left and fruitless < length:
            # Several pages are read at once, so that calls can be sent ahead of the replies. If
            # other clients also rotate the list, the pages that were read ahead have moved: then
            # one page is popped at a time, and its call also names the IDs of the next page.
            entries = (_WINDOW_PAGES if alone else 2) * size
            window = queue.call(
                "LRANGE", queue.keys.processing, -(skipped + min(length, entries)), -(skipped + 1)
            )
            if not window:
                return
            pages = [window[max(0, end - size) : end] for end in range(len(window), 0, -size)]
            batches = [_wanted_of(page[::-1], left) for page in pages]
            expected = sum(map(len, batches)) if alone else len(batches[0])
            if not alone:
                pages, batches = pages[:1], [_wanted_of(window[::-1], left)]
            found = 0
            ranges = self._page_ranges(pages, batches, skipped)
            for page, batch in zip(pages, self._perform(ranges), strict=False):
                done = batch.located().ids
                left.difference_update(done)
                found += len(done)
                # A page whose IDs were missed is worth reading again.
                fruitless = (
                    0 if done else fruitless + len(page) / (_MISSES_MAX if len(batch) else 1)
                )
                if len(batch):
                    yield batch
            alone = found >= expected
            if self._dry_run:
                # Nothing is rotated, so the next window comes after this one.
                skipped += len(window)

    def _page_ranges(
        self, pages: list[list[bytes]], batches: list[list[bytes]], skipped: int
    ) -> Iterator[ListRange]:
        for page, ids in zip(pages, batches, strict=True):
            yield ListRange(Where.PROCESSING, skipped, len(page), ids)
            if self._dry_run:
                skipped += len(page)

    def _in_main(self, wanted: Set[bytes]) -> Iterator[OutcomeBatch]:
        """Act on IDs that are in main, in pages from its right end."""
        if not wanted:
            return
        left = set(wanted)
        main = self._queue.keys.main
        cursor = ListCursor(self._queue, main, page_size=MAIN_PAGE_ENTRIES, reports_progress=False)
        for page in cursor:
            for batch in self.apply_to_page(cursor, page, left):
                left.difference_update(batch.located().ids)
                yield batch
            if not left:
                return

    def apply_to_page(
        self, cursor: ListCursor, page: Sequence[bytes], wanted: Set[bytes]
    ) -> Iterator[OutcomeBatch]:
        """Act once on the wanted IDs in the page of main that the cursor has just read."""
        places = {entry: at for at, entry in enumerate(page) if entry in wanted}
        gone: set[bytes] = set()
        for ids in in_batches(places, items_max=min(_MAIN_PAGE_IDS, self._items_max)):
            # The entries that were removed so far were nearer to the right end.
            first, last = places[ids[0]], places[ids[-1]]
            offset = max(0, cursor.offset + first - len(gone))
            for batch in self._perform([ListRange(Where.MAIN, offset, last - first + 1, ids)]):
                if not self._dry_run:
                    gone.update(batch.ids_with(*self._delisted))
                yield batch
        cursor.removed(gone)

    def _unlisted(self, ids: list[bytes]) -> Iterator[OutcomeBatch]:
        """Act on IDs that are in no list.

        A script does not push an ID without a lease or guard, because a cleaner may have pushed it
        since the lists were read. Such IDs are claimed, then the lists are read once more, and then
        the operation acts on the IDs that are still in no list.
        """
        if not self._pushes and not self._dry_run:
            ids = self._still_unlisted(ids)
        unprotected = list(ids) if self._claims_first else []
        if not self._claims_first:
            for batch in self._perform(self._unlisted_ranges(ids)):
                unprotected += batch.ids_with(Status.ELSEWHERE)
                yield batch
        if self._dry_run:
            yield from self._perform(self._unlisted_ranges(unprotected))
        elif self._pushes and unprotected:
            left: list[bytes] = []
            claimed = self._claim_unlisted(unprotected)
            for batch in self._perform(self._unlisted_ranges(claimed)):
                left += set(batch.ids).difference(batch.ids_with(*self._delisted))
                yield batch
            # Other clients have changed these since.
            self._unclaim(left)

    def _still_unlisted(self, ids: list[bytes]) -> list[bytes]:
        """The IDs without data, and those that a second read of the lists does not find either.

        An item that was returned during the first read may have moved from processing, which is
        read last, to the end of main that is read first. Its entry would be left behind.
        """
        with_data: list[bytes] = []
        for batch in in_batches(ids):
            keys = map(self._queue.keys.item, batch)
            there = self._queue.call_all([("EXISTS", key) for key in keys])
            with_data += [item_id for item_id, exists in zip(batch, there, strict=True) if exists]
        listed = places_of(self._queue, with_data).listed if with_data else set()
        return [item_id for item_id in ids if item_id not in listed]

    def _unlisted_ranges(self, ids: list[bytes]) -> Iterator[ListRange]:
        for batch in in_batches(ids, items_max=self._items_max):
            yield ListRange(Where.UNLISTED, 0, 0, batch)

    def _claim_unlisted(self, ids: list[bytes]) -> list[bytes]:
        """Claim IDs without a lease, and return the claimed ones that are in no list."""
        queue = self._queue
        claimed: list[bytes] = []
        for batch in in_batches(ids, items_max=_CLAIM_IDS):
            claimed += queue.run("claim", self._claim, CLAIM_MS, *batch)
        if not claimed:
            return []
        listed = places_of(queue, claimed).listed
        self._unclaim(listed)
        return [item_id for item_id in claimed if item_id not in listed]

    def _unclaim(self, ids: Iterable[bytes]) -> None:
        for batch in in_batches(ids):
            self._queue.run("unclaim", self._claim, *batch)

    def _by_name(self, ids: list[bytes], *, reverse: bool = False) -> Iterator[OutcomeBatch]:
        if not ids:
            return
        keys = self._queue.keys
        length = sum(self._queue.call_all([("LLEN", key) for key in (keys.main, keys.processing)]))
        batches = list(in_batches(ids, items_max=min(self._items_max, ids_per_call(length))))
        if reverse:
            batches.reverse()
        yield from self._perform(ListRange(Where.NAME, 0, 0, batch) for batch in batches)


def _wanted_of(page: list[bytes], wanted: Set[bytes]) -> list[bytes]:
    """The wanted IDs of a page, each once."""
    distinct = dict.fromkeys(page)
    if distinct.keys() <= wanted:
        return list(distinct)
    return [item_id for item_id in distinct if item_id in wanted]
