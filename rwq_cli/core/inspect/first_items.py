"""Finding the first item of a list, behind ghosts."""

from collections.abc import Mapping
from typing import Any

from rwq_cli.core.handle import Queue

# How many entries of a list or sorted set are looked at. Ghosts are few, or all of its entries.
LOOK_ENTRIES = 1000


def has_items(queue: Queue) -> bool:
    """Whether one of the first entries of a list or sorted set is an item.

    The keys of other programs may have the same names, but have no data of items.
    """
    keys = queue.keys
    lists, zsets = (keys.main, keys.processing, keys.cleaning), (keys.delayed, keys.buried)
    pages = queue.call_all(
        [
            *(("LRANGE", key, -LOOK_ENTRIES, -1) for key in lists),
            *(("ZRANGE", key, 0, LOOK_ENTRIES - 1) for key in zsets),
        ],
        return_errors=True,
    )
    ids = {item_id for page in pages if isinstance(page, list) for item_id in page}
    return any(queue.call_all([("EXISTS", keys.item(item_id)) for item_id in ids]))


def next_ages(next_ids: Mapping[Queue, bytes]) -> dict[bytes, int]:
    """By queue name, about how long its next item has waited, seconds; unknown ones are left out.

    The queues, on one connection, come with the next entry of their main lists, which may be a
    ghost.
    """
    ages = _idle_times({queue: [item_id] for queue, item_id in next_ids.items()})
    behind = [queue for queue, (age,) in ages.items() if age is None]
    if behind:
        commands = [("LRANGE", queue.keys.main, -LOOK_ENTRIES, -1) for queue in behind]
        pages = behind[0].connection.root.call_all(commands, return_errors=True)
        found = zip(behind, pages, strict=True)
        ages |= _idle_times({q: page[::-1] for q, page in found if isinstance(page, list)})
    known = {queue.name: [a for a in each if a is not None][:1] for queue, each in ages.items()}
    return {name: age for name, first in known.items() for age in first if isinstance(age, int)}


def _idle_times(ids: Mapping[Queue, list[bytes]]) -> dict[Queue, list[Any]]:
    """The idle times of the data of each queue's IDs; None if there is no data."""
    pairs = [(queue, item_id) for queue, own in ids.items() for item_id in own]
    if not pairs:
        return {}
    commands = [("OBJECT", "IDLETIME", queue.keys.item(item_id)) for queue, item_id in pairs]
    replies = iter(pairs[0][0].connection.root.call_all(commands, return_errors=True))
    return {queue: [next(replies) for _ in own] for queue, own in ids.items()}
