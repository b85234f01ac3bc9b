"""Replacing the data of items that is still what was read: `lua/ops/set_data.lua`.

Place, lease, state, times and expiry stay; idle times are reset.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

from rwq_cli.core.batches import BATCH_BYTES, Flush, acknowledged, in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.bulk import Journal, recorded
from rwq_cli.core.lua import script_words
from rwq_cli.core.model import OutcomeBatch, Outcomes, Status
from rwq_cli.core.state.probe import ItemSnapshot

# An item as it was read, and its new data.
Edit = tuple[ItemSnapshot, bytes]

# Each takes the server about three microseconds.
EDIT_ITEMS = 1000
# What is written to the journal at once.
_GROUP_ITEMS = 8 * EDIT_ITEMS


def edit_items(
    queue: Queue,
    edits: Iterable[Edit | Flush],
    journal: Journal | None = None,
    *,
    dry_run: bool = False,
) -> Outcomes:
    """Replace the data of items, each if it is still what was read; see `WorkQueue.edit_many`.

    What is replaced is written to the journal first, some thousand items at a time or up to a
    `FLUSH`, each with the SHA-256 of its new data, which `Line` takes.
    """
    kept = None if dry_run else journal

    def calls(edits: Iterable[Edit]) -> Iterator[tuple[list[bytes], Sequence[object]]]:
        for batch in in_batches(edits, items_max=EDIT_ITEMS):
            words = (word for item, new in batch for word in (item.item_id, item.data, new))
            yield [item.item_id for item, _ in batch], script_words("set_data", words)

    def edited() -> Iterator[OutcomeBatch]:
        if dry_run:
            queue.connection.set_no_touch()
        queue.check_one_slot()
        queue.progress.begin("editing")
        limits = {"items_max": _GROUP_ITEMS, "size_max": BATCH_BYTES}
        for group in in_batches(edits, **limits, size_of=lambda e: len(e[0].data) + len(e[1])):
            if same := [item.item_id for item, new in group if new == item.data]:
                yield OutcomeBatch.all_of(same, Status.UNCHANGED)
            changes = [(item, new) for item, new in group if new != item.data]
            items = [item for item, _ in changes]
            by = [sha256(new).hexdigest() for _, new in changes]
            act = queue.act_each("set_data", calls(changes), dry_run=dry_run)
            yield from recorded(queue, kept, items, act, Status.SET, replaced_by=by)

    return Outcomes(acknowledged(queue.progress, edited()))
