"""Replacing the data of an item: `lua/ops/set_data.lua`."""

from hashlib import sha256

from rwq_cli.core.errors import ConnectionLost, ServerError, WrongType
from rwq_cli.core.handle import Queue, to_bytes
from rwq_cli.core.items.bulk import read_items
from rwq_cli.core.items.journal import Journal, NoJournal
from rwq_cli.core.model import OutcomeBatch, Status
from rwq_cli.core.state.snapshot import ItemSnapshot, Skipped


def read_item(queue: Queue, item_id: bytes | str) -> ItemSnapshot | None:
    """Read an item with its data, for `set_data`.

    Args:
        queue: The queue.
        item_id: The ID.

    Raises:
        WrongType: The data key or a lease key has the wrong type.

    Returns:
        The item; None if it has no data.
    """
    queue.connection.set_no_touch()
    skipped = Skipped()
    # Read to the end: a stream of calls that is left open costs its connection.
    found = [item for part in read_items(queue, [to_bytes(item_id)], skipped) for item in part]
    if skipped.wrong_keys:
        raise WrongType.of(skipped.wrong_keys[0])
    return found[0] if found else None


def set_data(
    queue: Queue,
    item: ItemSnapshot,
    data: bytes,
    journal: Journal | None = None,
    *,
    dry_run: bool = False,
) -> Status:
    """Replace the data of an item if it is still what was read.

    Its place, lease, state, times and expiry stay. Its idle time is reset.

    Args:
        queue: The queue.
        item: The item as `read_item` gave it.
        data: The new data.
        journal: The journal to write the item to first; None if there is none.
        dry_run: Change nothing, and report what would be done.

    Raises:
        WrongType: The data key now has the wrong type.

    Returns:
        `SET`, `UNCHANGED` if the new data equals the old, `CHANGED` if the data is no longer what
        was read, or `MISSING`.
    """
    if data == item.data:
        return Status.UNCHANGED
    journal = NoJournal() if journal is None or dry_run else journal
    journal.write([item])
    try:
        reply = queue.run(
            "set_data", id=item.item_id, before=item.data, after=data, dry_run=dry_run
        )
    except ConnectionLost:
        # It may have run.
        raise
    except ServerError:
        journal.record_removed_except([item.item_id])
        raise
    (status,) = OutcomeBatch.from_reply([item.item_id], reply).statuses
    journal.record_removed_except([] if status is Status.SET else [item.item_id])
    return status


def set_data_back(
    queue: Queue, item: ItemSnapshot, written: str, *, dry_run: bool = False
) -> Status:
    """Restore the data of an item if it is still what `set_data` wrote.

    Args:
        queue: The queue.
        item: The item as it was before.
        written: The SHA-256, in hexadecimal, of the data that replaced it.
        dry_run: Change nothing, and report what would be done.

    Returns:
        `SET`; `ALREADY_THERE` if it has its earlier data, `CHANGED` if it has any other data,
        `MISSING`, or `WRONG_TYPE`.
    """
    try:
        now = read_item(queue, item.item_id)
        if now is None:
            return Status.MISSING
        if now.data == item.data:
            return Status.ALREADY_THERE
        if sha256(now.data).hexdigest() != written:
            return Status.CHANGED
        return set_data(queue, now, item.data, dry_run=dry_run)
    except WrongType:
        return Status.WRONG_TYPE
