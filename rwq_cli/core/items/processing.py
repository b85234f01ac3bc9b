"""Acting on the processing list, however long it is and however many IDs are sought in it."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from typing import Any

from rwq_cli.core.batches import BATCH_ITEMS, ids_per_call, in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import walk_processing
from rwq_cli.core.server.connection import REFUSED

# Looking for one ID passes over the whole list; turning the list round moves every entry once, at
# about thirty times the cost.
FEW_IDS = 30
# So many pages are read ahead.
_WINDOW_PAGES = 8
# So often an ID may pass by unseen before it is left to whoever called.
_LOOKS = 5


def act_one_by_one(
    queue: Queue,
    script: str,
    args: Sequence[object],
    ids: Sequence[bytes],
    list_length: int,
    *,
    last_first: bool = False,
    items_max: int = BATCH_ITEMS,
) -> Iterator[tuple[Sequence[bytes], Any]]:
    """Run a script that looks for each ID wherever it is.

    Args:
        queue: The queue.
        script: The script.
        args: Its arguments before the IDs; the first says that there is no page.
        ids: The IDs.
        list_length: How many entries it has to pass over for each, to keep the calls short.
        last_first: Make the calls in reverse order; the IDs of each stay in theirs.
        items_max: How many IDs a call may have at most.

    Yields:
        The IDs of each call, and its reply.
    """
    per_call = min(items_max, ids_per_call(list_length))
    batches: Iterable[list[bytes]] = in_batches(ids, items_max=per_call)
    if last_first:
        batches = list(batches)[::-1]
    for batch in batches:
        yield (
            batch,
            queue.run(script, *args, *batch),
        )


def act_by_pages(
    queue: Queue,
    script: str,
    args: Sequence[object],
    sought: Collection[bytes],
    dealt_with: Callable[[Sequence[bytes], Any], Collection[bytes]],
    *,
    seeks_on: bool = False,
    page_items: int = BATCH_ITEMS,
) -> Iterator[tuple[Sequence[bytes], Any]]:
    """Run a script on page after page of processing, turning the list round until all is done.

    The pages that are read are the pages that the script takes off, unless others took entries off
    in between; then some IDs pass by unseen, and are met again when their turn comes. It ends when
    all that is sought was dealt with, or when the list was turned round in vain: what is left then
    is no more in it, needs nothing, or was turned away from us by somebody else all the time.

    Args:
        queue: The queue.
        script: The script, whose first argument is the page's size.
        args: Its further arguments before the IDs.
        sought: The IDs; each should be in the list only once.
        dealt_with: Which IDs of a call its reply says were dealt with.
        seeks_on: Seek these further, too: one may have come into the list a second time since the
            caller looked. Then it ends only when the list was turned round in vain.
        page_items: How many entries the script takes off in one call.

    Yields:
        The IDs of each call, and its reply.
    """
    left = set(sought)
    length = int(queue.call("LLEN", queue.keys.processing))
    alone, in_vain = True, 0.0
    while left and in_vain < length:
        # Several pages are read at once, so that the calls can be sent ahead of the replies. Where
        # others turn the list, too, what was read ahead is not there any more: then one page is
        # taken off at a time, and the next is sought with it, in case it has come in its place.
        entries = (_WINDOW_PAGES if alone else 2) * page_items
        window = queue.call("LRANGE", queue.keys.processing, -min(length, entries), -1)
        if not window:
            return
        ends = range(len(window), 0, -page_items)
        pages = [window[max(0, end - page_items) : end] for end in ends]
        batches = [_sought_in(page, left) for page in pages]
        expected = sum(map(len, batches)) if alone else len(batches[0])
        if not alone:
            pages, batches = pages[:1], [_sought_in(window, left)]
        calls = ((page_items, *args, *batch) for batch in batches)
        replies = queue.run_each(script, calls)
        seen = 0
        for page, batch, reply in zip(pages, batches, replies, strict=True):
            if reply is REFUSED:
                continue
            done = dealt_with(batch, reply) if batch else ()
            if not seeks_on:
                left.difference_update(done)
            seen += len(done)
            # A page with IDs that were passed by unseen is worth another look.
            in_vain = 0 if done else in_vain + len(page) / (_LOOKS if batch else 1)
            if batch:
                yield batch, reply
        alone = seen >= expected


def _sought_in(page: list[bytes], sought: Set[bytes]) -> list[bytes]:
    """Those of a page's IDs that are sought, each once."""
    distinct = dict.fromkeys(page)
    if distinct.keys() <= sought:
        return list(distinct)
    return [item_id for item_id in distinct if item_id in sought]


def repeated_in_processing(queue: Queue, sought: Collection[bytes]) -> list[bytes]:
    """Which of the IDs are in processing more than once."""
    met: set[bytes] = set()
    repeated: set[bytes] = set()
    for page in walk_processing(
        queue,
    ):
        entries = set(page)
        repeated.update(entries & met)
        met |= entries
        if len(entries) < len(page):
            repeated.update(item_id for item_id, count in Counter(page).items() if count > 1)
    return [item_id for item_id in repeated if item_id in sought]
