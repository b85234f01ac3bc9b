"""Putting items in as they were: what an export or an undo file holds."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain, groupby
from typing import cast

from rwq_cli.core.batches import Flush, ids_per_call, in_batches
from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import lengths_of, walk_list, walk_processing
from rwq_cli.core.items.all_results import ResultTally, put_results
from rwq_cli.core.items.processing import FEW_IDS
from rwq_cli.core.items.results import Result
from rwq_cli.core.model import OutcomeBatch
from rwq_cli.core.server.connection import REFUSED
from rwq_cli.core.state.snapshot import SNAPSHOT_BYTES, ItemSnapshot, Place

# One call takes the server about two milliseconds.
PUT_ITEMS = 250


class OnConflict(StrEnum):
    """What to do with an ID that exists with other data."""

    FAIL = "fail"
    SKIP = "skip"
    REPLACE = "replace"


def put_all(
    queue: Queue,
    entries: Iterable[ItemSnapshot | Result | Flush],
    *,
    on_conflict: OnConflict,
    at_front: bool = False,
    tally: ResultTally,
    dry_run: bool = False,
) -> Iterator[OutcomeBatch]:
    """Put in the items and the results of an export, in their order.

    A result is put in where none is: one that is there stays, unless `on_conflict` is `REPLACE`.

    Args:
        queue: The queue.
        entries: The items as `put_items` takes them, and the results.
        on_conflict: See `put_items`.
        at_front: See `put_items`.
        tally: Takes what becomes of the results.
        dry_run: Say what would be done, and change nothing.

    Raises:
        ServerError: The server refused, or was lost; `acknowledged` says how many were answered.

    Yields:
        One outcome for each item, in order.
    """
    for is_result, run in _runs(entries):
        if is_result:
            results = cast(Iterator[Result | Flush], run)
            replaces = on_conflict is OnConflict.REPLACE
            for batch in put_results(queue, results, replaces=replaces, dry_run=dry_run):
                tally.add(batch)
            continue
        items = cast(Iterator[ItemSnapshot | Flush], run)
        if dry_run:
            yield from would_put(queue, items, on_conflict=on_conflict)
        else:
            yield from put_items(queue, items, on_conflict=on_conflict, at_front=at_front)


def _runs(
    entries: Iterable[ItemSnapshot | Result | Flush],
) -> Iterator[tuple[bool, Iterator[ItemSnapshot | Result | Flush]]]:
    """Items and results that follow one another, each with whether they are results."""
    is_result = False

    def kind(entry: ItemSnapshot | Result | Flush) -> bool:
        nonlocal is_result
        if not isinstance(entry, Flush):
            is_result = isinstance(entry, Result)
        return is_result

    return iter(groupby(entries, kind))


def put_items(
    queue: Queue,
    snapshots: Iterable[ItemSnapshot | Flush],
    *,
    on_conflict: OnConflict,
    at_front: bool = False,
) -> Iterator[OutcomeBatch]:
    """Put items in, in their order; memory does not grow with the stream.

    An ID that exists with the same data is there already, wherever it is by now: a worker may have
    leased it since. So doing the same again completes what was interrupted. As batches go in one
    after the other, each wholly or not at all, what is missing then is the end of the stream, and
    the order comes out right.

    An ID whose data are gone may still stand in a list. Its entry is taken off before the item goes
    in, which would else be there twice. A few IDs are looked for by name; for more, the lists are
    read once.

    Args:
        queue: The queue.
        snapshots: The items. Those of main in the order in which they shall be leased, those of
            processing longest leased first; a `FLUSH` among them ends a batch.
        on_conflict: What to do with an ID that exists with other data. One that is replaced loses
            its place, lease and times to the new one; that costs the lists' length each.
        at_front: Put each of main before all that wait, instead of behind. The items must then
            come last first.

    Raises:
        ServerError: The server refused, or was lost; `acknowledged` says how many were answered.

    Yields:
        One outcome for each item, in order.
    """
    acknowledged = 0
    try:
        for outcome in _outcomes(queue, put_batches(snapshots), on_conflict, at_front):
            acknowledged += len(outcome)
            queue.progress.advance(len(outcome))
            yield outcome
    except ServerError as error:
        error.acknowledged = acknowledged
        raise


def put_batches(snapshots: Iterable[ItemSnapshot | Flush]) -> Iterator[list[ItemSnapshot]]:
    """Items in batches that one call takes."""
    return in_batches(
        snapshots, items_max=PUT_ITEMS, bytes_max=SNAPSHOT_BYTES, size=lambda p: len(p.data)
    )


def _outcomes(
    queue: Queue,
    batches: Iterator[list[ItemSnapshot]],
    on_conflict: OnConflict,
    at_front: bool,
) -> Iterator[OutcomeBatch]:
    queue.progress.begin("putting in")
    listed = sum(queue.call_all([("LLEN", queue.keys.main), ("LLEN", queue.keys.processing)]))
    first = next(batches, [])
    if listed and len(first) <= max(FEW_IDS, ids_per_call(listed)):
        ids = {snapshot.item_id for snapshot in first}
        yield from _one_after_the_other(queue, [first], on_conflict, at_front, ids)
        first = next(batches, [])
    if not first:
        return
    ghosts: Collection[bytes] = ()
    if listed:
        ghosts = _ghosts(
            queue,
        )
        queue.progress.begin("putting in")
    rest = chain([first], batches)
    if ghosts or on_conflict is OnConflict.REPLACE:
        yield from _one_after_the_other(queue, rest, on_conflict, at_front, ghosts)
    else:
        yield from _sent_ahead(queue, rest, on_conflict, at_front)


def _ghosts(
    queue: Queue,
) -> set[bytes]:
    """The IDs in the lists that have no data."""
    queue.progress.begin(
        "reading the lists", lengths_of(queue, queue.keys.main, queue.keys.processing)
    )
    ghosts: set[bytes] = set()
    pages = chain(
        walk_list(queue, queue.keys.main, newest_first=True),
        walk_processing(
            queue,
        ),
    )
    for page in pages:
        there = queue.call("EXISTS", *map(queue.keys.item, page))
        if there < len(page):
            each = queue.call_all([("EXISTS", queue.keys.item(item_id)) for item_id in page])
            ghosts.update(item_id for item_id, exists in zip(page, each, strict=True) if not exists)
        queue.progress.advance(len(page))
    return ghosts


def _sent_ahead(
    queue: Queue,
    batches: Iterable[list[ItemSnapshot]],
    on_conflict: OnConflict,
    at_front: bool,
) -> Iterator[OutcomeBatch]:
    sent: list[list[bytes]] = []

    def calls() -> Iterator[Sequence[object] | None]:
        for batch in batches:
            sent.append([snapshot.item_id for snapshot in batch])
            yield _arguments(batch, on_conflict, at_front)

    for reply in queue.run_each("put", calls()):
        ids = sent.pop(0)
        if reply is not REFUSED:
            yield OutcomeBatch(ids, reply[0].decode("ascii"))


def _one_after_the_other(
    queue: Queue,
    batches: Iterable[list[ItemSnapshot]],
    on_conflict: OnConflict,
    at_front: bool,
    ghosts: Collection[bytes],
) -> Iterator[OutcomeBatch]:
    """Where a call may stop short, the next can only be made when that is known."""
    for batch in batches:
        left = batch
        while left:
            lengths = queue.call_all([("LLEN", queue.keys.main), ("LLEN", queue.keys.processing)])
            reply = queue.run(
                "put",
                *_arguments(left, on_conflict, at_front, ids_per_call(sum(lengths)), ghosts),
            )
            letters = reply[0].decode("ascii")
            yield OutcomeBatch([snapshot.item_id for snapshot in left[: len(letters)]], letters)
            left = left[len(letters) :]


def _arguments(
    batch: Sequence[ItemSnapshot],
    on_conflict: OnConflict,
    at_front: bool,
    removals_max: int = 0,
    ghosts: Collection[bytes] = (),
) -> list[object]:
    words: list[object] = [on_conflict.value, int(at_front), removals_max]
    for snapshot in batch:
        lease = snapshot.lease
        ttl_ms = -2
        if lease is not None:
            # A lease that was about to end still has to end by itself.
            ttl_ms = -1 if lease.ttl_ms is None else max(1, lease.ttl_ms)
        words += (
            snapshot.item_id,
            int(snapshot.item_id in ghosts),
            snapshot.data,
            _LETTERS.get(snapshot.place, "-") if snapshot.place else "-",
            lease.holder if lease else b"",
            ttl_ms,
            _or_nothing(snapshot.due_ms),
            _or_nothing(snapshot.buried_ms),
            _or_nothing(snapshot.returns),
        )
    return words


_LETTERS = {Place.MAIN: "m", Place.PROCESSING: "p"}


def _or_nothing(number: float | None) -> str:
    return "" if number is None else repr(number)


def would_put(
    queue: Queue,
    snapshots: Iterable[ItemSnapshot | Flush],
    *,
    on_conflict: OnConflict,
) -> Iterator[OutcomeBatch]:
    """What `put_items` would do; an ID that comes twice in the stream is known, too.

    Memory grows with the number of IDs here, because none of them is written down anywhere.
    """
    met: dict[bytes, int] = {}
    letter_of = {OnConflict.FAIL: "f", OnConflict.SKIP: "s", OnConflict.REPLACE: "p"}
    for batch in put_batches(snapshots):
        commands: list[tuple[object, ...]] = []
        for snapshot in batch:
            commands += (
                ("TYPE", queue.keys.item(snapshot.item_id)),
                ("GET", queue.keys.item(snapshot.item_id)),
            )
        replies = queue.call_all(commands, return_errors=True)
        letters = []
        for snapshot, kind, data in zip(batch, replies[::2], replies[1::2], strict=True):
            if snapshot.item_id in met:
                letters.append("h" if met[snapshot.item_id] == hash(snapshot.data) else "f")
            elif kind not in (b"none", b"string"):
                letters.append("y")
            elif data is None:
                letters.append("i")
            else:
                letters.append("h" if data == snapshot.data else letter_of[on_conflict])
            if letters[-1] in "ip":
                met[snapshot.item_id] = hash(snapshot.data)
        yield OutcomeBatch([snapshot.item_id for snapshot in batch], "".join(letters))
