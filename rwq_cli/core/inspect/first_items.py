"""Finding the first item of a list or sorted set, behind any number of ghosts."""

from collections.abc import Mapping
from contextlib import suppress
from math import inf

from rwq_cli.core.errors import InvalidArgument, PermissionDenied, WrongType
from rwq_cli.core.handle import Queue

# How many entries of each structure are read before a script looks at the rest.
_SAMPLE = 50
# Entries that one script looks at.
LOOK_ENTRIES = 5000


def first_item(
    queue: Queue, key: bytes, *, skip: int = 0, entries_max: float = inf
) -> bytes | None:
    """The first entry of a list or sorted set that is an item; None if there is none.

    After `skip` entries it looks at about `entries_max`. While the list moves, a few may be missed.
    """
    name = key.rpartition(b":")[2]
    read = LOOK_ENTRIES
    while read == LOOK_ENTRIES and skip < entries_max:
        read, *found = queue.run("first_item", structure=name, skip=skip, count=LOOK_ENTRIES)
        if found:
            item_id: bytes = found[0]
            return item_id
        skip += read
    return None


def has_items(queue: Queue) -> bool:
    """Whether an entry of a list or sorted set is an item.

    The keys of other programs may have the same names, but have no data of items.
    """
    keys = queue.keys
    lists, zsets = (keys.main, keys.processing, keys.cleaning), (keys.delayed, keys.buried)
    pages = queue.call_all(
        [
            *(("LRANGE", key, -_SAMPLE, -1) for key in lists),
            *(("ZRANGE", key, 0, _SAMPLE - 1) for key in zsets),
        ],
        return_errors=True,
    )
    ids = [item_id for page in pages if isinstance(page, list) for item_id in page]
    if any(queue.call_all([("EXISTS", keys.item(item_id)) for item_id in ids])):
        return True
    longer = [
        key
        for key, page in zip((*lists, *zsets), pages, strict=True)
        if isinstance(page, list) and len(page) == _SAMPLE
    ]
    try:
        return any(first_item(queue, key, skip=_SAMPLE) is not None for key in longer)
    except (WrongType, InvalidArgument):
        # Another of its keys has the wrong type, or they are on several nodes.
        return False


def next_ages(next_ids: Mapping[Queue, bytes], *, entries_max: float = inf) -> dict[bytes, int]:
    """By queue name, about how long its next item has waited, seconds; unknown ones are left out.

    The queues, on one connection, come with the next entry of their main lists, which may be a
    ghost: then about `entries_max` entries are looked at.
    """
    ages = _idle_times(next_ids)
    behind: dict[Queue, bytes] = {}
    for queue, age in ages.items():
        if age is None:
            # A ghost. No script can look behind it if the keys are on several nodes.
            with suppress(WrongType, PermissionDenied, InvalidArgument):
                item_id = first_item(queue, queue.keys.main, entries_max=entries_max)
                if item_id is not None:
                    behind[queue] = item_id
    ages |= _idle_times(behind)
    return {queue.name: age for queue, age in ages.items() if isinstance(age, int)}


def _idle_times(ids: Mapping[Queue, bytes]) -> dict[Queue, object]:
    """The idle time of the data of each queue's ID; None if there is no data."""
    if not ids:
        return {}
    queues = list(ids)
    commands = [("OBJECT", "IDLETIME", queue.keys.item(ids[queue])) for queue in queues]
    replies = queues[0].connection.root.call_all(commands, return_errors=True)
    return dict(zip(queues, replies, strict=True))
