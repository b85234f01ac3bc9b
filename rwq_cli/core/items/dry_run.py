"""What a verb would do, found out by reading: the dry runs of most verbs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

from rwq_cli.core.batches import Flush, in_batches
from rwq_cli.core.errors import WrongType
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import walk_list
from rwq_cli.core.inspect.report import (
    ITEMS_WITH_DATA,
    Detail,
    Probe,
    item_from,
    probe,
    seen_in_list,
    with_details,
)
from rwq_cli.core.items.bulk import LeasePolicy
from rwq_cli.core.items.processing import FEW_IDS
from rwq_cli.core.items.result_options import ResultOptions
from rwq_cli.core.items.results import check_places
from rwq_cli.core.items.schedule import Burial, Delay
from rwq_cli.core.keys import BURIED_GUARD, DELAYED_GUARD
from rwq_cli.core.model import Item, NewItems, OutcomeBatch, State
from rwq_cli.core.state.rules import is_guard


def would_add(
    queue: Queue, batches: Iterable[NewItems | Flush], *, unique: bool
) -> Iterator[OutcomeBatch]:
    """Which items would be added; an ID that comes twice in the stream is a duplicate, too.

    Memory grows with the number of IDs here, because none of them is written down anywhere.
    """
    met: set[bytes] = set()
    for batch in batches:
        if isinstance(batch, Flush):
            continue
        exists = queue.call_all([("EXISTS", queue.keys.item(item_id)) for item_id in batch.ids])
        letters = []
        unchecked = unique and batch.dues is None
        for item_id, there in zip(batch.ids, exists, strict=True):
            letters.append("a" if unchecked or not (there or item_id in met) else "d")
            met.add(item_id)
        yield OutcomeBatch(batch.ids, "".join(letters))


def would_lease(
    queues: Sequence[Queue],
    count: int,
    *,
    shuffle: Callable[[list[Queue]], object] | None,
) -> Iterator[Item]:
    """The items that would be leased: of the first queue that has any, up to `count`.

    What is due comes after what waits already, where it would be promoted.
    """
    from rwq_cli.core.inspect.listing import Selection, Source, list_items

    turn = list(queues)
    if shuffle is not None:
        shuffle(turn)
    detail = Detail(data=True)
    for queue in turn:
        waiting = Selection(states=frozenset({State.WAITING}))
        listed = list_items(queue, Source(main=True), waiting, detail, limit=count)
        due = _promoted(queue, detail)
        found = False
        for item in islice(_once(chain(listed, due)), count):
            found = True
            yield item
        if found:
            return


def _promoted(queue: Queue, detail: Detail) -> Iterator[Item]:
    """What would be promoted, in that order."""
    from rwq_cli.core.items.promote import promote

    ids = (item_id for step in promote(queue, dry_run=True) for item_id in step.ids)
    for batch in in_batches(ids, items_max=ITEMS_WITH_DATA):
        (scores,) = queue.call_all([("ZMSCORE", queue.keys.delayed, *batch)])
        items = []
        for item_id, seen, score in zip(batch, probe(queue, batch), scores, strict=True):
            # Without one it was promoted meanwhile.
            if score is not None:
                due_ms = int(score)
                facts = replace(seen_in_list(item_id, seen), due_ms=due_ms, now_ms=due_ms)
                items.append(item_from(queue.keys.name, facts, None))
        yield from with_details(queue, items, detail)


def _once(items: Iterable[Item]) -> Iterator[Item]:
    met: set[bytes] = set()
    for item in items:
        if item.item_id not in met:
            met.add(item.item_id)
            yield item


def would_complete(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    *,
    owner: bytes | None,
    result_options: ResultOptions | None = None,
) -> Iterator[OutcomeBatch]:
    """Which items would be completed."""

    def letter(seen: Probe) -> str:
        if not seen.has_data:
            return "m"
        return "o" if owner and _holder(seen) != owner else "c"

    for batch, probes in _probes(queue, ids):
        if result_options is not None:
            there = [item_id for item_id, seen in zip(batch, probes, strict=True) if seen.has_data]
            check_places(queue, there)
        yield _batch(batch, "".join(map(letter, probes)), probes)


def would_touch(queue: Queue, ids: Iterable[bytes | Flush]) -> Iterator[OutcomeBatch]:
    """Which leases would get a new expiry."""

    def letter(seen: Probe) -> str:
        if not seen.has_data:
            return "m"
        return "n" if seen.lease is None or is_guard(seen.lease) else "t"

    for batch, probes in _probes(queue, ids):
        yield _batch(batch, "".join(map(letter, probes)), probes)


def would_release(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    lease_policy: LeasePolicy,
    *,
    front: bool,
) -> Iterator[OutcomeBatch]:
    """Which items would be put back."""
    for block in in_batches(ids, items_max=100_000):
        sought = set(block)
        waiting: set[bytes] = set()
        for page in walk_list(queue, queue.keys.main, newest_first=True):
            waiting.update(sought.intersection(page))
        if len(block) > FEW_IDS:
            waiting -= _behind_guards(queue, waiting)
        for batch, probes in _probes(queue, block):
            sessions = _sessions(probes)
            letters = []
            for item_id, seen, session in zip(batch, probes, sessions, strict=True):
                if not seen.has_data:
                    letters.append("m")
                elif item_id in waiting:
                    letters.append("r" if front else "w")
                elif not lease_policy.may_end(session):
                    letters.append("o")
                else:
                    letters.append("r")
            yield _told(batch, letters, sessions)


def would_park(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    lease_policy: LeasePolicy,
    how: Burial | Delay,
) -> Iterator[OutcomeBatch]:
    """Which items would be put off or buried, and which are buried already."""
    is_delay = isinstance(how, Delay)

    def letter(item_id: bytes, seen: Probe, session: bytes | None) -> str:
        if not seen.has_data:
            return "m"
        if not lease_policy.may_end(session):
            return "o"
        return "l" if is_delay else "e" if item_id in buried else "b"

    for block in in_batches(ids, items_max=100_000):
        buried = set() if is_delay else _buried(queue, block)
        for batch, probes in _probes(queue, block):
            sessions = _sessions(probes)
            yield _told(batch, list(map(letter, batch, probes, sessions)), sessions)


def would_kick(queue: Queue, ids: Iterable[bytes | Flush]) -> Iterator[OutcomeBatch]:
    """Which buried items would be brought back."""
    for block in in_batches(ids, items_max=100_000):
        entries = _entries(queue, block)
        buried = _buried(queue, block, kicked=True)
        for batch, probes in _probes(queue, block):
            sessions = _sessions(probes)
            letters = []
            for item_id, seen, session in zip(batch, probes, sessions, strict=True):
                if not seen.has_data:
                    letters.append("m")
                elif item_id in entries and session is not None:
                    letters.append("o")
                else:
                    letters.append("k" if item_id in buried else "u")
            yield _told(batch, letters, sessions)


def _entries(queue: Queue, ids: Iterable[bytes]) -> set[bytes]:
    """Which of the IDs have an entry in the buried zset."""
    entries: set[bytes] = set()
    for batch in in_batches(ids):
        (scores,) = queue.call_all([("ZMSCORE", queue.keys.buried, *batch)])
        known = zip(batch, scores, strict=True)
        entries.update(item_id for item_id, score in known if score is not None)
    return entries


def _buried(queue: Queue, ids: Sequence[bytes], *, kicked: bool = False) -> set[bytes]:
    """Which of the IDs have an entry in the buried zset and are in no list.

    Of many, what is behind a full guard is taken to be in none. Where they shall be kicked an entry
    in processing behind a full guard means nothing.
    """
    entries = _entries(queue, ids)
    if not entries:
        return entries
    from rwq_cli.core.inspect.survey import listed_ids

    listed = set(listed_ids(queue, entries, scheduled=False))
    guarded = _behind_guards(queue, listed)
    if len(ids) > FEW_IDS:
        return entries - (listed - guarded)
    if kicked and guarded:
        for page in walk_list(queue, queue.keys.main, newest_first=True):
            guarded.difference_update(page)
        return entries - (listed - guarded)
    return entries - listed


def _behind_guards(queue: Queue, ids: Iterable[bytes]) -> set[bytes]:
    """Which of the IDs are delayed or buried, as a guard of both lease names says."""
    found: set[bytes] = set()
    for batch in in_batches(ids):
        due, buried, *pairs = queue.call_all(
            [
                ("ZMSCORE", queue.keys.delayed, *batch),
                ("ZMSCORE", queue.keys.buried, *batch),
                *(
                    ("MGET", queue.keys.lease(item_id), queue.keys.old_lease(item_id))
                    for item_id in batch
                ),
            ]
        )
        for at, (item_id, pair) in enumerate(zip(batch, pairs, strict=True)):
            for scores, guard in ((due, DELAYED_GUARD), (buried, BURIED_GUARD)):
                is_guarded = all(holder and holder.startswith(guard) for holder in pair)
                if scores[at] is not None and is_guarded:
                    found.add(item_id)
    return found


def _sessions(probes: list[Probe]) -> list[bytes | None]:
    """The session that holds each item; None where nobody does, a guard being nobody's lease."""
    return [
        seen.lease.holder if seen.lease and not is_guard(seen.lease) else None for seen in probes
    ]


def _told(
    ids: list[bytes], letters: Sequence[str], sessions: Sequence[bytes | None]
) -> OutcomeBatch:
    holders = [
        session or b"" for letter, session in zip(letters, sessions, strict=True) if letter == "o"
    ]
    return OutcomeBatch(ids, "".join(letters), holders)


def _batch(ids: list[bytes], letters: str, probes: list[Probe]) -> OutcomeBatch:
    holders = [_holder(seen) for letter, seen in zip(letters, probes, strict=True) if letter == "o"]
    return OutcomeBatch(ids, letters, holders)


def _holder(seen: Probe) -> bytes:
    return seen.lease.holder if seen.lease else b""


def _probes(
    queue: Queue, ids: Iterable[bytes | Flush]
) -> Iterator[tuple[list[bytes], list[Probe]]]:
    for batch in in_batches(ids):
        distinct = list(dict.fromkeys(batch))
        probes = probe(queue, distinct)
        for item_id, seen in zip(distinct, probes, strict=True):
            if seen.wrong_type:
                raise WrongType.of(queue.keys.item(item_id))
        yield distinct, probes
