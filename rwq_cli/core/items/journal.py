"""The file to which items are written before an operation removes or replaces them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from rwq_cli.core.errors import ConnectionLost, ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.model import OutcomeBatch, Status
from rwq_cli.core.state.snapshot import ItemSnapshot


class Journal(Protocol):
    """A file to which items are written before they are removed or replaced.

    `replaced_by` says for each item or result what replaces it: the SHA-256 of the new data, in
    hexadecimal, or the completion time of the new result. Without it, they are removed.
    """

    def write(self, items: Sequence[ItemSnapshot], replaced_by: Sequence[str] = ()) -> None:
        """Write items durably; raise if that fails."""

    def write_results(self, results: Sequence[Result], replaced_by: Sequence[str] = ()) -> None:
        """Write results durably; raise if that fails."""

    def record_removed_except(self, kept: Sequence[bytes]) -> None:
        """Record that all items written so far were removed or replaced, except these."""


class NoJournal:
    """A journal that writes nothing, for items that are in another queue or already in a file."""

    def write(self, items: Sequence[ItemSnapshot], replaced_by: Sequence[str] = ()) -> None:
        """Do nothing."""

    def write_results(self, results: Sequence[Result], replaced_by: Sequence[str] = ()) -> None:
        """Do nothing."""

    def record_removed_except(self, kept: Sequence[bytes]) -> None:
        """Do nothing."""


def recorded(
    queue: Queue,
    journal: Journal,
    written: Iterable[bytes],
    act: Iterable[OutcomeBatch],
    *taken: Status,
) -> Iterator[OutcomeBatch]:
    """Act on items that were written to a journal, then record which were taken or replaced."""
    left, outcomes = dict.fromkeys(written), list[OutcomeBatch]()
    try:
        for batch in act:
            outcomes.append(batch)
            for item_id in batch.ids_with(*taken):
                left.pop(item_id, None)
    except ConnectionLost:
        # The calls may have run, so the written items stay in doubt.
        raise
    except (ServerError, KeyboardInterrupt) as error:
        # An interrupt that was asked for came after all replies: what is left was not sent.
        if isinstance(error, ServerError) or queue.connection.stop.requested:
            journal.record_removed_except(list(left))
            yield from outcomes
        raise
    journal.record_removed_except(list(left))
    yield from outcomes
