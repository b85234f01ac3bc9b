"""A walk over a whole queue, for what no single list can tell: orphans, ghosts, duplicates."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from rwq_cli.core.batches import in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import lengths_of, walk_list, walk_processing
from rwq_cli.core.inspect.nested_queues import names_among
from rwq_cli.core.inspect.report import probe, seen_in_list
from rwq_cli.core.keys import BURIED_GUARD, DELAYED_GUARD, STRUCTURES, is_key_of
from rwq_cli.core.model import State
from rwq_cli.core.server.scan import SCAN_COUNT, scan_keys
from rwq_cli.core.state.rules import state_of

_GUARDS = (DELAYED_GUARD, BURIED_GUARD)


@dataclass(slots=True)
class Survey:
    """What a walk found. IDs are in the order in which they were met.

    Attributes:
        orphaned: Items in no list or zset, without a lease.
        unlisted: Items in no list or zset, with a lease that ends.
        held: Items in no list or zset, with a lease that does not end.
        main_ghosts: IDs in main without data.
        processing_ghosts: IDs in processing without data.
        scheduled_ghosts: IDs in the delayed or buried zset without data, with that zset's name.
        duplicated: Items in main more than once, or in main and in processing.
        stale_cleaning: IDs in the list of a 0.1 cleaner that are gone, or in another list.
        stale_schedule: Items in main or in processing that are in the delayed or buried zset all
            the same, with that zset's name.
        stale_returns: IDs with a count of returns that have no data.
        returned: How many items with data a clean brought back.
        returns: How often cleans brought those back, all together.
        items: How many data keys were met; SCAN may meet one twice.
    """

    orphaned: list[bytes] = field(default_factory=list)
    unlisted: list[bytes] = field(default_factory=list)
    held: list[bytes] = field(default_factory=list)
    main_ghosts: list[bytes] = field(default_factory=list)
    processing_ghosts: list[bytes] = field(default_factory=list)
    scheduled_ghosts: list[tuple[bytes, str]] = field(default_factory=list)
    duplicated: list[bytes] = field(default_factory=list)
    stale_cleaning: list[bytes] = field(default_factory=list)
    stale_schedule: list[tuple[bytes, str]] = field(default_factory=list)
    stale_returns: list[bytes] = field(default_factory=list)
    returned: int = 0
    returns: int = 0
    items: int = 0


def survey(
    queue: Queue,
    others: Callable[[list[bytes]], object] | None = None,
) -> Survey:
    """Walk over both lists and the zsets, the data keys, and the lists again for what is odd.

    Why it finds an item that stays broken, and hardly any that is only on its way: what is in no
    list is told by the second walk alone. That comes after the data key was met, and goes over
    main, processing and the zsets in the direction in which items travel. So an item that is added,
    leased or completed meanwhile is met at one of the stations, or is gone. What still slips
    through is what the second look of a clean is for. The first walk only says which few names are
    worth looking for, so that not every ID has to be kept.

    Of each listed ID a number of 64 bits is kept until its data are met. If two IDs of a million
    share one (about once in twenty million walks), an orphan or a ghost can stay unseen; Python
    salts the hash anew in each process, so the next walk finds it.

    Args:
        queue: The queue.
        others: Takes pages of all other keys under the queue's prefix, met on the way.
    """
    found, meter = Survey(), queue.progress
    entries = lengths_of(queue, queue.keys.main, queue.keys.processing)
    meter.begin("reading the lists", entries)
    without_data, repeated, scheduled = _walk_lists(
        queue,
    )
    meter.begin("reading the data keys")
    unlisted = _scan_data(queue, without_data, found, others)
    in_hand = _read_cleaning(
        queue,
    )
    _read_returns(queue, found)
    places: dict[bytes, Counter[str]] = {
        item_id: Counter() for item_id in chain(repeated, in_hand, scheduled)
    }
    if unlisted or places or without_data:
        meter.begin("reading the lists again", entries)
        ghosts = _find(queue, unlisted, places, without_data)
        _sort_ghosts(queue, ghosts, found)
    _sort_unlisted(queue, unlisted, found)
    _sort_repeated(queue, repeated, places, found)
    _sort_scheduled(queue, scheduled, places, found)
    for item_id, look in zip(in_hand, probe(queue, in_hand), strict=True):
        if places[item_id] or not look.has_data:
            found.stale_cleaning.append(item_id)
    return found


def scan_ids(
    queue: Queue,
    others: Callable[[list[bytes]], object] | None = None,
) -> Iterator[list[bytes]]:
    """The IDs of all data keys, in pages; some may be met twice, as SCAN says.

    `others` takes pages of all other keys under the queue's prefix; they may come twice, too.
    """
    prefix, length = queue.keys.item_prefix, len(queue.keys.item_prefix)
    for page in scan_keys(
        queue.connection, queue.keys.item_pattern if others is None else queue.keys.pattern
    ):
        if others is None:
            ids = [key[length:] for key in page]
        else:
            ids = [key[length:] for key in page if key.startswith(prefix)]
            if len(ids) < len(page):
                others([key for key in page if not key.startswith(prefix)])
        if ids:
            queue.progress.advance(len(ids))
            yield ids


def listed_ids(
    queue: Queue,
    candidates: Iterable[bytes],
    *,
    scheduled: bool = True,
) -> frozenset[bytes]:
    """Which of the candidates are in main, processing or, if `scheduled`, a zset, read in pages.

    Main is read before processing, so that an item leased meanwhile is met in one of them.
    """
    sought = frozenset(candidates)
    met: set[bytes] = set()
    for _, page in _locations(queue, scheduled=scheduled):
        met.update(sought.intersection(page))
    return frozenset(met)


def _locations(queue: Queue, *, scheduled: bool = True) -> Iterator[tuple[str, list[bytes]]]:
    """Pages of the IDs that are listed, with where, in the direction in which items travel."""
    for page in walk_list(queue, queue.keys.main, newest_first=True):
        yield "main", page
    for page in walk_processing(
        queue,
    ):
        yield "processing", page
    if scheduled:
        yield from zset_members(
            queue,
        )


def zset_members(
    queue: Queue,
) -> Iterator[tuple[str, list[bytes]]]:
    """Pages of what is delayed or buried, with which; some IDs may be met twice, as ZSCAN says."""
    for name, key in (("delayed", queue.keys.delayed), ("buried", queue.keys.buried)):
        cursor: object = 0
        while True:
            cursor, members = queue.call("ZSCAN", key, cursor, "COUNT", SCAN_COUNT)
            # redis-py pairs the scores with the members; a bare client gives one flat list.
            page = [entry[0] if isinstance(entry, tuple) else entry for entry in members]
            if page:
                yield name, page
            if int(cursor) == 0:  # type: ignore[call-overload]
                break


def _walk_lists(
    queue: Queue,
) -> tuple[set[int], dict[bytes, None], dict[bytes, None]]:
    """The numbers of all IDs that are listed, those met twice in the lists, and in a zset, too."""
    numbers: set[int] = set()
    repeated: dict[bytes, None] = {}
    scheduled: dict[bytes, None] = {}
    for where, page in _locations(
        queue,
    ):
        before = len(numbers)
        if not numbers.isdisjoint(map(hash, page)):
            met = repeated if where in ("main", "processing") else scheduled
            met.update((item_id, None) for item_id in page if hash(item_id) in numbers)
        numbers.update(map(hash, page))
        if where == "main" and len(numbers) - before < len(page):
            repeated.update((item_id, None) for item_id, n in Counter(page).items() if n > 1)
    return numbers, repeated, scheduled


def _scan_data(
    queue: Queue,
    numbers: set[int],
    found: Survey,
    others: Callable[[list[bytes]], object] | None,
) -> dict[bytes, None]:
    """Take the numbers of what has data away; the IDs that had none of them."""
    unlisted: dict[bytes, None] = {}
    for page in scan_ids(queue, others):
        found.items += len(page)
        if not numbers.issuperset(map(hash, page)):
            unlisted.update((item_id, None) for item_id in page if hash(item_id) not in numbers)
        numbers.difference_update(map(hash, page))
    return unlisted


def _read_cleaning(
    queue: Queue,
) -> list[bytes]:
    return list(chain.from_iterable(walk_list(queue, queue.keys.cleaning, newest_first=True)))


def scan_returns(
    queue: Queue,
) -> Iterator[dict[bytes, bytes]]:
    """The counts of returns by ID, in pages; some may be met twice, as HSCAN says."""
    cursor: object = 0
    while True:
        cursor, page = queue.call("HSCAN", queue.keys.returns, cursor, "COUNT", SCAN_COUNT)
        if page:
            yield page
        if int(cursor) == 0:  # type: ignore[call-overload]
            return


def as_count(value: bytes | None) -> int:
    """A count of returns as the server gives it; what is no number counts as none."""
    return int(value) if value and value.isdigit() else 0


def _read_returns(queue: Queue, found: Survey) -> None:
    met: set[int] = set()
    for page in scan_returns(
        queue,
    ):
        ids = [item_id for item_id in page if hash(item_id) not in met]
        met.update(map(hash, ids))
        for item_id, look in zip(ids, probe(queue, ids), strict=True):
            if look.has_data:
                found.returned += 1
                found.returns += as_count(page[item_id])
            else:
                found.stale_returns.append(item_id)


def stale_returns(
    queue: Queue,
) -> list[bytes]:
    """The IDs with a count of returns that have no data."""
    found = Survey()
    _read_returns(queue, found)
    return found.stale_returns


def _find(
    queue: Queue,
    unlisted: dict[bytes, None],
    places: dict[bytes, Counter[str]],
    numbers: set[int],
) -> list[tuple[bytes, str]]:
    """Strike out what is listed after all; count where the sought IDs are; name the numbers."""
    named = []
    for where, page in _locations(
        queue,
    ):
        for item_id in unlisted.keys() & page:
            del unlisted[item_id]
        if not places.keys().isdisjoint(page):
            for item_id in page:
                if item_id in places:
                    places[item_id][where] += 1
        if not numbers.isdisjoint(map(hash, page)):
            named += [(item_id, where) for item_id in page if hash(item_id) in numbers]
    return named


def _sort_ghosts(queue: Queue, suspects: list[tuple[bytes, str]], found: Survey) -> None:
    seen = probe(queue, [item_id for item_id, _ in suspects])
    for (item_id, where), look in zip(suspects, seen, strict=True):
        # With data, it was added after the data keys were walked.
        if not look.has_data:
            if where == "main":
                found.main_ghosts.append(item_id)
            elif where == "processing":
                found.processing_ghosts.append(item_id)
            else:
                found.scheduled_ghosts.append((item_id, where))


def _sort_repeated(
    queue: Queue,
    repeated: dict[bytes, None],
    places: dict[bytes, Counter[str]],
    found: Survey,
) -> None:
    still = [
        item_id
        for item_id in repeated
        if places[item_id]["main"] and places[item_id]["main"] + places[item_id]["processing"] > 1
    ]
    for item_id, look in zip(still, probe(queue, still), strict=True):
        if look.has_data:
            found.duplicated.append(item_id)


def _sort_scheduled(
    queue: Queue,
    scheduled: dict[bytes, None],
    places: dict[bytes, Counter[str]],
    found: Survey,
) -> None:
    listed = [i for i in scheduled if places[i]["main"] or places[i]["processing"]]
    for batch in in_batches(listed):
        holders = queue.call_all(
            [
                ("MGET", queue.keys.lease(item_id), queue.keys.old_lease(item_id))
                for item_id in batch
            ]
        )
        seen = probe(queue, batch)
        for item_id, held_by, look in zip(batch, holders, seen, strict=True):
            # Behind a whole guard it is an old entry in processing that means nothing.
            guarded = all(holder and holder.startswith(_GUARDS) for holder in held_by)
            if look.has_data and not look.wrong_type and (places[item_id]["main"] or not guarded):
                names = [name for name in ("delayed", "buried") if places[item_id][name]]
                found.stale_schedule += [(item_id, name) for name in names]


def _sort_unlisted(queue: Queue, unlisted: Iterable[bytes], found: Survey) -> None:
    like_structures = [
        queue.keys.item(i) for i in unlisted if queue.keys.item(i).endswith(STRUCTURES)
    ]
    nested = names_among(queue.connection, like_structures)
    own = [i for i in unlisted if not (nested and is_key_of(queue.keys.item(i), nested))]
    lists = {
        State.ORPHANED: found.orphaned,
        State.UNLISTED: found.unlisted,
        State.HELD: found.held,
    }
    queue.progress.begin("looking at items", len(own))
    for batch in in_batches(own):
        queue.progress.advance(len(batch))
        for item_id, look in zip(batch, probe(queue, batch), strict=True):
            state = state_of(seen_in_list(item_id, look))
            if state in lists:
                lists[state].append(item_id)
