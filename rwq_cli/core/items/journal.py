"""Writing items to a journal before an operation removes, replaces or moves them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rwq_cli.core.batches import BATCH_BYTES, in_batches
from rwq_cli.core.errors import ConnectionLost, ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.items.bulk import Act
from rwq_cli.core.model import OutcomeBatch, Status
from rwq_cli.core.state.expected import ANY, Expected, Located, fingerprint
from rwq_cli.core.state.probe import End, ItemSnapshot, Skipped, read_snapshots

# Calls whose items are written at once, and which are then sent together.
_GROUP_CALLS = 12
_TAKEN = (Status.REMOVED, Status.MOVED, Status.COMPLETED)
# Matches no data.
_OTHER_DATA = "-"


class Journal:
    """A file to which items are written, durably, before they are removed or replaced; this base
    class writes nothing.

    `replaced_by` says for each item or result what replaces it: the SHA-256 of the new data, in
    hexadecimal, or the completion time of the new result. Without it, they are removed.
    """

    def write(self, items: Sequence[ItemSnapshot], replaced_by: Sequence[str] = ()) -> None:
        """Write items; raise if that fails."""

    def write_results(self, results: Sequence[Result], replaced_by: Sequence[str] = ()) -> None:
        """Write results; raise if that fails."""

    def record_removed_except(self, kept: Sequence[bytes]) -> None:
        """Record that all items written so far were removed or replaced, except these."""


class NoJournal(Journal):
    """A journal that writes nothing, for items that are in another queue or already in a file."""


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


def saving(
    queue: Queue,
    journal: Journal,
    act: Act,
    expected: Expected = ANY,
    *,
    keeps_leased: bool = False,
    as_saved: Callable[[ItemSnapshot], ItemSnapshot] = lambda item: item,
    saved: Mapping[bytes, str] | None = None,
    dry_run: bool = False,
) -> Act:
    """What writes items to a journal before it acts on them by another `Act`.

    An item that differs from the journal is `CHANGED`. With `keeps_leased`, leased items are left
    alone, and not saved. `as_saved` gives the state in which an item is to be restored. `saved` has
    the fingerprints of items that are already in a file, which are not read.
    """
    # Whether a walk over main is nearer to the end of the queue.
    is_past_middle = False

    def both(calls: Iterable[Located], is_first_look: bool) -> Iterator[OutcomeBatch]:
        known = (call._replace(saved=saved) for call in calls)
        is_known = saved is not None or dry_run
        groups = in_batches(known, items_max=_GROUP_CALLS) if is_known else saved_groups(calls)
        for group in groups:
            written = [
                item_id
                for call in group
                for item_id in call.ids
                if (call.saved or {}).get(item_id, _OTHER_DATA) != _OTHER_DATA
            ]
            yield from recorded(queue, journal, written, act(group, is_first_look), *_TAKEN)

    def saved_groups(calls: Iterable[Located]) -> Iterator[list[Located]]:
        """Save the items of the calls; yield the calls in groups, with the fingerprints."""
        group: list[Located] = []
        items: list[ItemSnapshot] = []
        for call, read in read_snapshots(queue, calls, Skipped()):
            prints = {item.item_id: print_of(item) for item in read}
            kept = [item for item in read if prints[item.item_id] not in (None, _OTHER_DATA)]
            items += map(as_saved, in_their_order(call, kept))
            known = {item_id: each for item_id, each in prints.items() if each}
            group.append(call._replace(saved=known, read=kept))
            size = sum(len(item.data) for item in items)
            if len(group) == _GROUP_CALLS or size >= BATCH_BYTES:
                if items:
                    journal.write(items)
                yield group
                group, items = [], []
        if items:
            journal.write(items)
        if group:
            yield group

    def print_of(item: ItemSnapshot) -> str | None:
        """The fingerprint of an item that is to be saved; None if it is to be left alone."""
        data = fingerprint(item.data)
        if expected.fingerprints is not None and expected.fingerprints.get(item.item_id) != data:
            return _OTHER_DATA
        return None if keeps_leased and item.lease else data

    def in_their_order(call: Located, items: list[ItemSnapshot]) -> list[ItemSnapshot]:
        """The items, those of main in their order; once one is nearer to the end, so are all that
        follow it. Removed items shift the middle of main during a walk.
        """
        nonlocal is_past_middle
        if call.how != "places":
            return sorted(items, key=lambda i: -1 if i.position is None else i.position)
        if is_past_middle:
            items = [i._replace(nearer=End.LAST) if i.nearer is End.NEXT else i for i in items]
        is_past_middle |= any(item.nearer is End.LAST for item in items)
        return items

    return both
