"""Writing items to a journal before an operation removes, replaces or moves them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from rwq_cli.core.batches import BATCH_BYTES, in_batches
from rwq_cli.core.errors import ConnectionLost, ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.items.bulk import Act
from rwq_cli.core.model import OutcomeBatch, Status
from rwq_cli.core.state.expected import ANY, Expected, fingerprint
from rwq_cli.core.state.located import Located
from rwq_cli.core.state.snapshot import End, ItemSnapshot, Skipped, read_snapshots

# Calls whose items are written at once, and which are then sent together.
_GROUP_CALLS = 12
_TAKEN = (Status.REMOVED, Status.MOVED, Status.COMPLETED)
# Matches no data.
_OTHER_DATA = "-"


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


def once_read(queue: Queue, expected: Expected) -> Expected:
    """The conditions for items that are read first, where that resets their idle times."""
    return expected if queue.connection.set_no_touch() else expected._replace(idle_s=None)


class Saving:
    """An `Act` that writes items to a journal before it acts on them by another.

    Args:
        queue: The queue.
        journal: The journal.
        act: Acts on what was written; an item that differs from the journal is `CHANGED`.
        expected: The conditions that the items must still meet.
        keeps_leased: Do not save leased items, which are left alone.
        as_saved: The state in which an item is to be restored.
        saved: The fingerprints of items that are already in a file; None to read and write them.
        dry_run: Write nothing.
    """

    def __init__(
        self,
        queue: Queue,
        journal: Journal,
        act: Act,
        expected: Expected = ANY,
        *,
        keeps_leased: bool = False,
        as_saved: Callable[[ItemSnapshot], ItemSnapshot] = lambda item: item,
        saved: Mapping[bytes, str] | None = None,
        dry_run: bool = False,
    ) -> None:
        self._queue = queue
        self._journal = journal
        self._act = act
        self._chosen = expected.fingerprints
        self._keeps_leased = keeps_leased
        self._as_saved = as_saved
        self._saved = saved
        self._dry_run = dry_run
        # Whether a walk over main is nearer to the end of the queue.
        self._is_past_middle = False

    def __call__(self, calls: Iterable[Located], is_first_look: bool) -> Iterator[OutcomeBatch]:
        for group in self._groups(calls):
            written = [
                item_id
                for call in group
                for item_id in call.ids
                if (call.saved or {}).get(item_id, _OTHER_DATA) != _OTHER_DATA
            ]
            act = self._act(group, is_first_look)
            yield from recorded(self._queue, self._journal, written, act, *_TAKEN)

    def _groups(self, calls: Iterable[Located]) -> Iterator[list[Located]]:
        """Save the items of the calls; yield the calls in groups, with the fingerprints."""
        if self._saved is not None or self._dry_run:
            known = (call._replace(saved=self._saved) for call in calls)
            yield from in_batches(known, items_max=_GROUP_CALLS)
            return
        group: list[Located] = []
        items: list[ItemSnapshot] = []
        for call, read in read_snapshots(self._queue, calls, Skipped()):
            saved: dict[bytes, str] = {}
            kept = [item for item in read if self._is_to_be_saved(item, saved)]
            items += map(self._as_saved, self._in_their_order(call, kept))
            group.append(call._replace(saved=saved, read=kept))
            size = sum(len(item.data) for item in items)
            if len(group) == _GROUP_CALLS or size >= BATCH_BYTES:
                if items:
                    self._journal.write(items)
                yield group
                group, items = [], []
        if items:
            self._journal.write(items)
        if group:
            yield group

    def _is_to_be_saved(self, item: ItemSnapshot, fingerprints: dict[bytes, str]) -> bool:
        data = fingerprint(item.data)
        if self._chosen is not None and self._chosen.get(item.item_id) != data:
            fingerprints[item.item_id] = _OTHER_DATA
            return False
        if self._keeps_leased and item.lease:
            return False
        fingerprints[item.item_id] = data
        return True

    def _in_their_order(self, call: Located, items: list[ItemSnapshot]) -> list[ItemSnapshot]:
        """The items, those of main in their order; once one is nearer to the end, so are all that
        follow it. Removed items shift the middle of main during a walk.
        """
        if call.how != "places":
            return sorted(items, key=lambda i: -1 if i.position is None else i.position)
        if self._is_past_middle:
            items = [i._replace(nearer=End.LAST) if i.nearer is End.NEXT else i for i in items]
        self._is_past_middle |= any(item.nearer is End.LAST for item in items)
        return items
