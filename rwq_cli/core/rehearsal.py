"""What a verb would do, found out by reading: the dry runs of most verbs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice, takewhile

from rwq_cli.core.batches import Pause, in_batches
from rwq_cli.core.connection import Connection
from rwq_cli.core.errors import WrongType
from rwq_cli.core.keeping import Keeping
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.looking import Detail, Glance, glance
from rwq_cli.core.model import Item, NewItems, OutcomeBatch, State
from rwq_cli.core.paging import walk_list
from rwq_cli.core.results import check_places
from rwq_cli.core.states import is_guard


def would_add(
    connection: Connection, keys: QueueKeys, batches: Iterable[NewItems | Pause], *, unique: bool
) -> Iterator[OutcomeBatch]:
    """Which items would be added; an ID that comes twice in the stream is a duplicate, too.

    Memory grows with the number of IDs here, because none of them is written down anywhere.
    """
    met: set[bytes] = set()
    for batch in batches:
        if isinstance(batch, Pause):
            continue
        exists = connection.call_all([("EXISTS", keys.item(item_id)) for item_id in batch.ids])
        letters = []
        unchecked = unique and batch.dues is None
        for item_id, there in zip(batch.ids, exists, strict=True):
            letters.append("a" if unchecked or not (there or item_id in met) else "d")
            met.add(item_id)
        yield OutcomeBatch(batch.ids, "".join(letters))


def would_lease(
    connection: Connection,
    queues: Sequence[QueueKeys],
    count: int,
    *,
    shuffle: Callable[[list[QueueKeys]], object] | None,
) -> Iterator[Item]:
    """The items that would be leased: of the first queue that has any, up to `count`.

    What is due comes after what waits already, because it would be promoted.
    """
    from rwq_cli.core.listing import Selection, Source, list_items

    turn = list(queues)
    if shuffle is not None:
        shuffle(turn)
    detail = Detail(data=True)
    for keys in turn:
        waiting = Selection(states=frozenset({State.WAITING}))
        later = Selection(states=frozenset({State.DUE, State.DELAYED}))
        listed = list_items(connection, keys, Source(main=True), waiting, detail, limit=count)
        scheduled = list_items(connection, keys, Source(delayed=True), later, detail, limit=None)
        due = takewhile(lambda item: item.state is State.DUE, scheduled)
        found = False
        for item in islice(_once(chain(listed, due)), count):
            found = True
            yield item
        if found:
            return


def _once(items: Iterable[Item]) -> Iterator[Item]:
    met: set[bytes] = set()
    for item in items:
        if item.item_id not in met:
            met.add(item.item_id)
            yield item


def would_complete(
    connection: Connection,
    keys: QueueKeys,
    ids: Iterable[bytes | Pause],
    *,
    owner: bytes | None,
    keeping: Keeping | None = None,
) -> Iterator[OutcomeBatch]:
    """Which items would be completed."""

    def letter(seen: Glance) -> str:
        if not seen.has_data:
            return "m"
        return "o" if owner and _holder(seen) != owner else "c"

    for batch, glances in _glances(connection, keys, ids):
        if keeping is not None:
            there = [item_id for item_id, seen in zip(batch, glances, strict=True) if seen.has_data]
            check_places(connection, keys, there)
        yield _batch(batch, "".join(map(letter, glances)), glances)


def would_touch(
    connection: Connection, keys: QueueKeys, ids: Iterable[bytes | Pause]
) -> Iterator[OutcomeBatch]:
    """Which leases would get a new expiry."""

    def letter(seen: Glance) -> str:
        if not seen.has_data:
            return "m"
        return "n" if seen.lease is None or is_guard(seen.lease) else "t"

    for batch, glances in _glances(connection, keys, ids):
        yield _batch(batch, "".join(map(letter, glances)), glances)


def would_release(
    connection: Connection,
    keys: QueueKeys,
    ids: Iterable[bytes | Pause],
    *,
    own_holder: bytes,
    force: bool,
    front: bool,
) -> Iterator[OutcomeBatch]:
    """Which items would be put back."""
    for block in in_batches(ids, items_max=100_000):
        sought = set(block)
        waiting: set[bytes] = set()
        for page in walk_list(connection, keys.main, newest_first=True):
            waiting.update(sought.intersection(page))
        for batch, glances in _glances(connection, keys, block):
            sessions = _sessions(glances)
            letters = []
            for item_id, seen, session in zip(batch, glances, sessions, strict=True):
                if not seen.has_data:
                    letters.append("m")
                elif item_id in waiting:
                    letters.append("r" if front else "w")
                elif session not in (None, own_holder) and not force:
                    letters.append("o")
                else:
                    letters.append("r")
            yield _told(batch, letters, sessions)


def would_delay(
    connection: Connection,
    keys: QueueKeys,
    ids: Iterable[bytes | Pause],
    *,
    own_holder: bytes,
    force: bool,
) -> Iterator[OutcomeBatch]:
    """Which items would be put off."""
    for batch, glances in _glances(connection, keys, ids):
        sessions = _sessions(glances)
        letters = [
            _parked(seen, session, "l", own_holder, force)
            for seen, session in zip(glances, sessions, strict=True)
        ]
        yield _told(batch, letters, sessions)


def would_bury(
    connection: Connection,
    keys: QueueKeys,
    ids: Iterable[bytes | Pause],
    *,
    own_holder: bytes,
    force: bool,
) -> Iterator[OutcomeBatch]:
    """Which items would be buried, and which are."""
    for block in in_batches(ids, items_max=100_000):
        buried = _buried(connection, keys, block)
        for batch, glances in _glances(connection, keys, block):
            sessions = _sessions(glances)
            letters = [
                _parked(seen, session, "e" if item_id in buried else "b", own_holder, force)
                for item_id, seen, session in zip(batch, glances, sessions, strict=True)
            ]
            yield _told(batch, letters, sessions)


def would_kick(
    connection: Connection, keys: QueueKeys, ids: Iterable[bytes | Pause]
) -> Iterator[OutcomeBatch]:
    """Which buried items would be brought back."""
    for block in in_batches(ids, items_max=100_000):
        entries = _entries(connection, keys, block)
        buried = _buried(connection, keys, block)
        for batch, glances in _glances(connection, keys, block):
            sessions = _sessions(glances)
            letters = []
            for item_id, seen, session in zip(batch, glances, sessions, strict=True):
                if not seen.has_data:
                    letters.append("m")
                elif item_id in entries and session is not None:
                    letters.append("o")
                else:
                    letters.append("k" if item_id in buried else "u")
            yield _told(batch, letters, sessions)


def _parked(seen: Glance, session: bytes | None, done: str, own_holder: bytes, force: bool) -> str:
    if not seen.has_data:
        return "m"
    return "o" if session not in (None, own_holder) and not force else done


def _entries(connection: Connection, keys: QueueKeys, ids: Iterable[bytes]) -> set[bytes]:
    """Which of the IDs have an entry in the buried zset."""
    entries: set[bytes] = set()
    for batch in in_batches(ids):
        (scores,) = connection.call_all([("ZMSCORE", keys.buried, *batch)])
        known = zip(batch, scores, strict=True)
        entries.update(item_id for item_id, score in known if score is not None)
    return entries


def _buried(connection: Connection, keys: QueueKeys, ids: Iterable[bytes]) -> set[bytes]:
    """Which of the IDs have an entry in the buried zset and are in no list."""
    entries = _entries(connection, keys, ids)
    if not entries:
        return entries
    from rwq_cli.core.survey import listed_ids

    return entries - listed_ids(connection, keys, entries, scheduled=False)


def _sessions(glances: list[Glance]) -> list[bytes | None]:
    """The session that holds each item; None where nobody does, a guard being nobody's lease."""
    return [
        seen.lease.holder if seen.lease and not is_guard(seen.lease) else None for seen in glances
    ]


def _told(
    ids: list[bytes], letters: Sequence[str], sessions: Sequence[bytes | None]
) -> OutcomeBatch:
    holders = [
        session or b"" for letter, session in zip(letters, sessions, strict=True) if letter == "o"
    ]
    return OutcomeBatch(ids, "".join(letters), holders)


def _batch(ids: list[bytes], letters: str, glances: list[Glance]) -> OutcomeBatch:
    holders = [
        _holder(seen) for letter, seen in zip(letters, glances, strict=True) if letter == "o"
    ]
    return OutcomeBatch(ids, letters, holders)


def _holder(seen: Glance) -> bytes:
    return seen.lease.holder if seen.lease else b""


def _glances(
    connection: Connection, keys: QueueKeys, ids: Iterable[bytes | Pause]
) -> Iterator[tuple[list[bytes], list[Glance]]]:
    for batch in in_batches(ids):
        distinct = list(dict.fromkeys(batch))
        glances = glance(connection, keys, distinct)
        for item_id, seen in zip(distinct, glances, strict=True):
            if seen.wrong_type:
                name = keys.item(item_id).decode("utf-8", "backslashreplace")
                raise WrongType(f"{name} holds another type than the protocol says")
        yield distinct, glances
