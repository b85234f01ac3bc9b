"""Writing items to a file before they are removed or replaced."""

from collections.abc import Iterable, Iterator, Sequence

from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.model import OutcomeBatch, Status
from rwq_cli.core.state.snapshots import ItemSnapshot


class Journal:
    """A file to which items are written, durably, before they are removed or replaced.

    `replaced_by` says for each item or result what replaces it: the SHA-256 of the new data, in
    hexadecimal, or the completion time of the new result. Without it, they are removed.
    """

    def write(
        self, entries: Sequence[ItemSnapshot | Result], replaced_by: Sequence[str] = ()
    ) -> None:
        """Write items or results; raise if that fails."""

    def record_removed_except(self, kept: Sequence[bytes]) -> None:
        """Record that all items written so far were removed or replaced, except these."""


def recorded(
    queue: Queue,
    journal: Journal | None,
    items: Sequence[ItemSnapshot],
    outcomes: Iterable[OutcomeBatch],
    *removing: Status,
    replaced_by: Sequence[str] = (),
) -> Iterator[OutcomeBatch]:
    """Write items to a journal, act on them by reading the outcomes, and record which have one of
    the statuses that tell of a removal or replacement."""
    if journal is None or not items:
        yield from outcomes
        return
    journal.write(items, replaced_by)
    kept, acknowledged_batches = {item.item_id: None for item in items}, list[OutcomeBatch]()
    try:
        for batch in outcomes:
            acknowledged_batches.append(batch)
            for item_id in batch.ids_with(*removing):
                kept.pop(item_id, None)
    except (ServerError, KeyboardInterrupt) as error:
        # What is in doubt may have been taken. An interrupt that was asked for came after all
        # replies: what is left was not sent.
        is_sure = queue.connection.stop.requested
        if not error.in_doubt if isinstance(error, ServerError) else is_sure:
            journal.record_removed_except(list(kept))
            yield from acknowledged_batches
        raise
    journal.record_removed_except(list(kept))
    yield from acknowledged_batches
