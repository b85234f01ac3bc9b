"""What a verb would do, found out by reading: the dry runs of add, complete, touch and release."""

from collections.abc import Iterable, Iterator

from rwq_cli.core.batches import Pause, in_batches
from rwq_cli.core.connection import Connection
from rwq_cli.core.errors import WrongType
from rwq_cli.core.keeping import Keeping
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.looking import Glance, glance
from rwq_cli.core.model import NewItems, OutcomeBatch
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
        for item_id, there in zip(batch.ids, exists, strict=True):
            letters.append("a" if unique or not (there or item_id in met) else "d")
            met.add(item_id)
        yield OutcomeBatch(batch.ids, "".join(letters))


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
            letters = []
            for item_id, seen in zip(batch, glances, strict=True):
                if not seen.has_data:
                    letters.append("m")
                elif item_id in waiting:
                    letters.append("r" if front else "w")
                elif _holder(seen) not in (b"", own_holder) and not force:
                    letters.append("o")
                else:
                    letters.append("r")
            yield _batch(batch, "".join(letters), glances)


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
