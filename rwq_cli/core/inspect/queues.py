"""The queues of a server, and the first items of each."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from rwq_cli.core.errors import text_of
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.ages import believed
from rwq_cli.core.keys import PER_ID_INFIXES, glob_pattern, is_glob, owner_of_structure, pattern_of

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection


# The ends of the keys whose lengths are counts of items; and one pattern for all of them, which few
# others match: each further walk costs the server seconds beside millions of keys.
_COUNTED = (b":queue", b":processing", b":delayed", b":buried")
_ENDS_SO = b"".join(b"[%b]" % bytes(sorted({*letters})) for letters in zip(*_COUNTED, strict=False))
# How many entries of a list or sorted set are looked at, and how many for the age of the next item.
# Ghosts are few, or all of its entries.
LOOK_ENTRIES = 1000
# How many calls of a scan a guess at a name is worth.
_PAGES_FOR_SIMILAR = 20
NEXT_ENTRIES = 10


def queue_names(connection: "Connection", *, any_type: bool = False) -> list[bytes]:
    """The names of all queues that have a list or a sorted set, in order; with `any_type`, also of
    those of which these keys all have the wrong type, so that a queue whose list was overwritten is
    not overlooked. They may belong to other programs.

    A queue's name is stored only in its keys. SCAN returns only lists and sorted sets, so that the
    server does not send a million data keys. A queue whose items are in no list or sorted set
    has neither, and is not found.
    """
    names: set[bytes] = set()
    for kind in ("list", "zset"):
        for page in connection.scan_keys(kind=kind):
            names.update(name for key in page if (name := owner_of_structure(key, "list", "zset")))
    for page in connection.scan_keys(b"*%b*" % _ENDS_SO) if any_type else ():
        for key in page:
            # Not the key of an item whose ID ends like a queue's key.
            if key.endswith(_COUNTED) and not any(map(key.__contains__, PER_ID_INFIXES)):
                names.add(owner_of_structure(key, "list", "zset") or b"")
    names.discard(b"")
    return sorted(names)


def exists(queue: Queue) -> bool:
    """Whether any key of the queue exists, other than those of items, leases and results."""
    return any(queue.call_all([("EXISTS", key) for key in queue.keys.structures]))


def similar_name(queue: Queue) -> bytes | None:
    """The name of a queue that is spelled much like this one's, among the first keys of a scan."""
    from difflib import get_close_matches

    pages = islice(queue.connection.root.scan_keys(kind="list"), _PAGES_FOR_SIMILAR)
    owners = (owner_of_structure(key, "list") for page in pages for key in page)
    names = {text_of(name): name for name in owners if name}
    similar = get_close_matches(text_of(queue.name), names, n=1, cutoff=0.7)
    return names[similar[0]] if similar else None


def matching_queues(
    connection: "Connection", words: Iterable[bytes], *, any_type: bool = False
) -> dict[bytes, list[bytes]]:
    """The queues that each word names: one name, or all that match a pattern, in order. A pattern
    that is also the name of a queue, even of one with items in no list, is that name."""
    names_by_word: dict[bytes, list[bytes]] = {}
    names: Sequence[bytes] | None = None
    for word in words:
        queue = Queue(connection, word)
        items = queue.connection.scan_keys(pattern_of(queue.keys.item_prefix))
        if not is_glob(word) or exists(queue) or next(items, None):
            names_by_word[word] = [word]
            continue
        names = queue_names(connection, any_type=any_type) if names is None else names
        names_by_word[word] = list(filter(glob_pattern(word).match, names))
    return names_by_word


def has_items(queue: Queue) -> bool:
    """Whether one of the first entries of a list or sorted set is an item: other programs may have
    keys of the same names, but no data."""
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


def largest_queue(queues: Sequence[Queue]) -> bytes | None:
    """The one of some queues on a server whose items take the most memory, judged by a few of
    each; None if the server does not say."""
    bytes_by_name: dict[bytes, float] = {}
    for queue in queues:
        keys = queue.keys
        lists, zsets = (keys.main, keys.processing), (keys.delayed, keys.buried)
        asking = [
            *(command for key in lists for command in (("LLEN", key), ("LRANGE", key, -5, -1))),
            *(command for key in zsets for command in (("ZCARD", key), ("ZRANGE", key, 0, 4))),
        ]
        replies = queue.call_all(asking, return_errors=True)
        ids = [item_id for page in replies[1::2] if isinstance(page, list) for item_id in page]
        usage = [("MEMORY", "USAGE", keys.item(item_id)) for item_id in ids]
        sizes = [n for n in queue.call_all(usage, return_errors=True) if isinstance(n, int)]
        items = sum(length for length in replies[::2] if isinstance(length, int))
        bytes_by_name[queue.name] = items * sum(sizes) / max(len(sizes), 1)
    largest = max(bytes_by_name, key=bytes_by_name.__getitem__, default=b"")
    return largest if bytes_by_name.get(largest) else None


def next_ages(next_ids: Mapping[Queue, Sequence[bytes]], uptime_s: int | None) -> dict[bytes, int]:
    """By queue name, about how long its next item has waited, seconds, if that is known. Queues, on
    one connection, come with the next entries of main, of which the first may be ghosts; the server
    is up for `uptime_s`."""
    pairs = [(queue, item_id) for queue, ids in next_ids.items() for item_id in ids]
    if not pairs:
        return {}
    commands = [("OBJECT", "IDLETIME", queue.keys.item(item_id)) for queue, item_id in pairs]
    replies = pairs[0][0].connection.root.call_all(commands, return_errors=True)
    ages: dict[bytes, int] = {}
    for (queue, _), idle_s in zip(pairs, replies, strict=True):
        if (age := believed(idle_s, uptime_s)) is not None:
            ages.setdefault(queue.name, age)
    return ages
