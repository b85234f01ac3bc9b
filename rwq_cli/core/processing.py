"""Acting on the processing list, however long it is and however many IDs are sought in it."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rwq_cli.core.batches import ids_per_call, in_batches
from rwq_cli.core.connection import Connection
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.paging import PAGE_SIZE, walk_list
from rwq_cli.core.scripts import queue_args, queue_keys


def act_in_processing(
    connection: Connection,
    keys: QueueKeys,
    script: str,
    args: Sequence[object],
    ids: Sequence[bytes],
    *,
    one_page_only: bool,
) -> Iterator[list[bytes]]:
    """Run a script on IDs that are in processing, the cheaper of two ways.

    Few are looked for one by one (LREM, whose cost is the list's length each time); for many the
    list is turned round once, page by page, whatever its length. An ID that is in the list more
    than once is always looked for by name, so that all its entries go at once.

    Args:
        connection: The server.
        keys: The queue.
        script: The script, whose first argument is the page's size, or 0.
        args: Its further arguments before the IDs.
        ids: The IDs.
        one_page_only: Never look for single IDs; what no page held is left out.

    Raises:
        ServerError: The server refused, or was lost.

    Yields:
        The script's replies.
    """
    length = int(connection.call("LLEN", keys.processing))

    def run(page_size: int, batch: Sequence[bytes]) -> list[bytes]:
        reply: list[bytes] = connection.run(
            script, queue_keys(keys), (*queue_args(keys), page_size, *args, *batch)
        )
        return reply

    # Turning the list round costs about thirty times as much an entry as passing over it.
    if not one_page_only and len(ids) <= 30:
        for batch in in_batches(ids, items_max=ids_per_call(length)):
            yield run(0, batch)
        return
    sought = set(ids)
    entries: Counter[bytes] = Counter()
    for page in walk_list(connection, keys.processing, newest_first=False):
        entries.update(sought.intersection(page))
        entries.update(_repeated(page, sought))
    repeated = [item_id for item_id, count in entries.items() if count > 1]
    for batch in in_batches(repeated, items_max=ids_per_call(length)):
        yield run(0, batch)
    sought.difference_update(repeated)
    left = int(connection.call("LLEN", keys.processing))
    while left > 0 and sought:
        # What is at the old end when the script runs is what was read here, but for entries that
        # others removed meanwhile; so one page more of IDs is sent than is taken off.
        page = connection.call("LRANGE", keys.processing, -2 * PAGE_SIZE, -1)
        batch = [item_id for item_id in page if item_id in sought]
        yield run(PAGE_SIZE, batch)
        left -= PAGE_SIZE


def _repeated(page: list[bytes], sought: set[bytes]) -> list[bytes]:
    """What is in one page more than once, each further time."""
    if len(set(page)) == len(page):
        return []
    counts = Counter(item_id for item_id in page if item_id in sought)
    return [item_id for item_id, count in counts.items() for _ in range(count - 1)]
