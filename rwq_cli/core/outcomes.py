"""Running a verb's script on many IDs, by the way that costs the server least."""

from collections.abc import Iterable, Iterator, Sequence

from rwq_cli.core.batches import Pause, ids_per_call, in_batches
from rwq_cli.core.connection import Connection
from rwq_cli.core.errors import ServerError
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.model import Outcome, Status
from rwq_cli.core.paging import walk_list
from rwq_cli.core.processing import act_in_processing
from rwq_cli.core.scripts import queue_args, queue_keys

# IDs are taken from their stream in blocks of this many, so that memory stays bounded while one
# turn of the processing list serves a whole block.
_BLOCK_IDS = 200_000


def outcomes_in(reply: Sequence[bytes]) -> Iterator[Outcome]:
    """The outcomes in a script's flat reply of ID, status and holder."""
    for item_id, status, holder in zip(reply[::3], reply[1::3], reply[2::3], strict=True):
        yield Outcome(item_id, Status(status.decode()), holder or None)


def act_on_ids(
    connection: Connection,
    keys: QueueKeys,
    script: str,
    args: Sequence[object],
    ids: Iterable[bytes | Pause],
    *,
    by_pages: bool = True,
    backwards: bool = False,
) -> Iterator[Outcome]:
    """Run `complete` or `release` on a stream of IDs.

    A few IDs are looked for one by one. Of many, those that are in processing and not in main are
    dealt with page by page, and the rest one by one.

    Args:
        connection: The server.
        keys: The queue.
        script: The script; its first argument is the page's size, or 0.
        args: Its further arguments before the IDs.
        ids: The IDs.
        by_pages: Whether the script may work page by page.
        backwards: The IDs were reversed: turn each batch round again.

    Raises:
        ServerError: The server refused, or was lost; `acknowledged` says how many IDs were done.

    Yields:
        One outcome for each distinct ID; in the order given where they are looked for one by one.
    """
    acknowledged = 0
    try:
        for block in in_batches(ids, items_max=_BLOCK_IDS):
            left = dict.fromkeys(block)
            if by_pages and len(left) > 30:
                for outcome in _in_pages(connection, keys, script, args, left):
                    acknowledged += 1
                    yield outcome
            for outcome in _one_by_one(connection, keys, script, args, list(left), backwards):
                acknowledged += 1
                yield outcome
    except ServerError as error:
        error.acknowledged = acknowledged
        raise


def _in_pages(
    connection: Connection,
    keys: QueueKeys,
    script: str,
    args: Sequence[object],
    left: dict[bytes, None],
) -> Iterator[Outcome]:
    """Deal with what is in processing alone; what is dealt with leaves `left`."""
    in_main: set[bytes] = set()
    for page in walk_list(connection, keys.main, newest_first=True):
        in_main.update(left.keys() & page)
    candidates = [item_id for item_id in left if item_id not in in_main]
    for reply in act_in_processing(connection, keys, script, args, candidates, one_page_only=True):
        for outcome in outcomes_in(reply):
            if outcome.item_id in left:
                del left[outcome.item_id]
                yield outcome


def _one_by_one(
    connection: Connection,
    keys: QueueKeys,
    script: str,
    args: Sequence[object],
    ids: list[bytes],
    backwards: bool,
) -> Iterator[Outcome]:
    if not ids:
        return
    lengths = connection.call_all([("LLEN", key) for key in (keys.main, keys.processing)])
    for batch in in_batches(ids, items_max=ids_per_call(sum(lengths))):
        if backwards:
            batch.reverse()
        reply = connection.run(script, queue_keys(keys), (*queue_args(keys), 0, *args, *batch))
        yield from outcomes_in(reply)
