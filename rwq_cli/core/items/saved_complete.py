"""Completing items that are written to a journal first: `lua/ops/complete.lua`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rwq_cli.core.batches import Flush
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.items.bulk import BulkRun
from rwq_cli.core.items.journal import Journal
from rwq_cli.core.items.remove import REMOVE_ITEMS, Remover
from rwq_cli.core.model import Outcome, OutcomeBatch, State, Status
from rwq_cli.core.state.expected import Expected
from rwq_cli.core.state.list_range import ListRange, Where
from rwq_cli.core.state.rules import is_guard
from rwq_cli.core.state.snapshot import End, ItemSnapshot, Place

_STAYS = frozenset({State.WAITING, State.DELAYED, State.DUE, State.BURIED})


def complete_saved(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    journal: Journal,
    args: Sequence[object],
    *,
    items_max: int,
    expected: Expected,
) -> Iterator[OutcomeBatch]:
    """Save items to the journal, then complete them; one that differs from it is `CHANGED`.

    Args:
        queue: The queue.
        ids: The IDs; read in batches.
        journal: The journal to write the items to first, in the state in which they are to be
            restored: items that a session holds, or that are broken, become the next to be leased.
        args: The arguments of the script from the eighth on, before the IDs.
        items_max: The maximum number of IDs in one call.
        expected: The conditions that the items must still meet.
    """
    return _Completer(queue, journal, args, items_max, expected).apply(ids)


class _Completer(Remover):
    """Completes items instead of removing them."""

    def __init__(
        self,
        queue: Queue,
        journal: Journal,
        args: Sequence[object],
        items_max: int,
        expected: Expected,
    ) -> None:
        super().__init__(queue, _WaitingJournal(journal), expected=expected)
        self._args = args
        items_max = min(items_max, REMOVE_ITEMS)
        self.run = BulkRun(
            queue, self.perform, self._token, doing="completing", items_max=items_max
        )

    def _take(self, seen: ListRange, fingerprints: Mapping[bytes, str]) -> OutcomeBatch:
        expected = self._expected._replace(fingerprints=fingerprints)
        args = (*seen.args(self._token), *expected.args(), *self._args)
        reply = self._queue.run("complete", *args, *expected.id_args(seen.ids))
        batch = OutcomeBatch.from_reply(seen.ids, reply)
        unsaved = set(batch.ids_with(Status.CHANGED)) - fingerprints.keys()
        if seen.where is Where.NAME or not unsaved:
            return batch
        # It was moved here since it was looked up.
        return OutcomeBatch.of(
            Outcome(each.item_id, Status.ELSEWHERE) if each.item_id in unsaved else each
            for each in batch
        )


class _WaitingJournal:
    """Writes items in the state in which they are to be restored; ended leases are left out."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def write(self, items: Sequence[ItemSnapshot], _replaced_by: Sequence[str] = ()) -> None:
        self._journal.write([_as_waiting(item) for item in items])

    def write_results(self, results: Sequence[Result], _replaced_by: Sequence[str] = ()) -> None:
        self._journal.write_results(results)

    def record_removed_except(self, kept: Sequence[bytes]) -> None:
        self._journal.record_removed_except(kept)


def _as_waiting(item: ItemSnapshot) -> ItemSnapshot:
    if item.state in _STAYS and (item.lease is None or is_guard(item.lease)):
        return item
    return item._replace(
        state=State.WAITING,
        place=Place.MAIN,
        lease=None,
        due_ms=None,
        buried_ms=None,
        reason=None,
        nearer=item.nearer or End.NEXT,
    )
