"""Acting on the processing list, however long it is and however many IDs are sought in it."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from typing import Any

from rwq_cli.core.batches import BATCH_ITEMS, ids_per_call, in_batches
from rwq_cli.core.connection import REFUSED, Connection
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.paging import walk_processing
from rwq_cli.core.scripts import queue_args, queue_keys

# Looking for one ID passes over the whole list; turning the list round moves every entry once, at
# about thirty times the cost.
FEW_IDS = 30
# Pages of so many entries are taken off at once, and so many entries are read ahead.
_PAGE = BATCH_ITEMS
_WINDOW = 8 * _PAGE


def act_one_by_one(
    connection: Connection,
    keys: QueueKeys,
    script: str,
    args: Sequence[object],
    ids: Sequence[bytes],
    list_length: int,
    *,
    last_first: bool = False,
) -> Iterator[tuple[Sequence[bytes], Any]]:
    """Run a script that looks for each ID wherever it is.

    Args:
        connection: The server.
        keys: The queue.
        script: The script.
        args: Its arguments before the IDs; the first says that there is no page.
        ids: The IDs.
        list_length: How many entries it has to pass over for each, to keep the calls short.
        last_first: Make the calls in reverse order; the IDs of each stay in theirs.

    Raises:
        ServerError: The server refused, or was lost.

    Yields:
        The IDs of each call, and its reply.
    """
    batches: Iterable[list[bytes]] = in_batches(ids, items_max=ids_per_call(list_length))
    if last_first:
        batches = list(batches)[::-1]
    for batch in batches:
        yield (
            batch,
            connection.run(script, queue_keys(keys), (*queue_args(keys), *args, *batch)),
        )


def act_by_pages(
    connection: Connection,
    keys: QueueKeys,
    script: str,
    args: Sequence[object],
    sought: Set[bytes],
) -> Iterator[tuple[Sequence[bytes], Any]]:
    """Run a script once on each page of processing, turning the list round once.

    The pages that are read are the pages that the script takes off, unless others removed entries
    from them in between; then some IDs pass by unseen, and whoever calls this deals with what is
    left.

    Args:
        connection: The server.
        keys: The queue.
        script: The script, whose first argument is the page's size.
        args: Its further arguments before the IDs.
        sought: The IDs; each should be in the list only once.

    Raises:
        ServerError: The server refused, or was lost.

    Yields:
        The IDs of each call, and its reply.
    """
    left = int(connection.call("LLEN", keys.processing))
    while left > 0:
        # Several pages are read at once, so that the calls can be sent ahead of the replies.
        window = connection.call("LRANGE", keys.processing, -min(left, _WINDOW), -1)
        if not window:
            return
        left -= len(window)
        pages = [window[max(0, end - _PAGE) : end] for end in range(len(window), 0, -_PAGE)]
        batches = [_sought_in(page, sought) for page in pages]
        calls = ((*queue_args(keys), _PAGE, *args, *batch) for batch in batches)
        replies = connection.run_each(script, queue_keys(keys), calls)
        for batch, reply in zip(batches, replies, strict=True):
            if batch and reply is not REFUSED:
                yield batch, reply


def _sought_in(page: list[bytes], sought: Set[bytes]) -> list[bytes]:
    """Those of a page's IDs that are sought, each once."""
    distinct = dict.fromkeys(page)
    if distinct.keys() <= sought:
        return list(distinct)
    return [item_id for item_id in distinct if item_id in sought]


def repeated_in_processing(
    connection: Connection, keys: QueueKeys, sought: Collection[bytes]
) -> list[bytes]:
    """Which of the IDs are in processing more than once."""
    met: set[bytes] = set()
    repeated: set[bytes] = set()
    for page in walk_processing(connection, keys):
        entries = set(page)
        repeated.update(entries & met)
        met |= entries
        if len(entries) < len(page):
            repeated.update(item_id for item_id, count in Counter(page).items() if count > 1)
    return [item_id for item_id in repeated if item_id in sought]
