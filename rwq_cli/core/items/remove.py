"""Removing items: `lua/ops/remove.lua`.

Items are written to a journal before they are removed, completed or moved, so that they can be
restored.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rwq_cli.core.batches import BATCH_WRITES, Flush
from rwq_cli.core.errors import ConnectionLost, ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.bulk import apply_with, send
from rwq_cli.core.items.journal import Journal
from rwq_cli.core.lua import script_words
from rwq_cli.core.model import OutcomeBatch, Outcomes, Status
from rwq_cli.core.state.expected import ANY, Expected, fingerprint
from rwq_cli.core.state.located import Located
from rwq_cli.core.state.snapshot import (
    SNAPSHOT_BYTES,
    End,
    ItemSnapshot,
    Skipped,
    read_snapshots,
)

# Each takes the server about four microseconds, plus one scan of at most half of the list.
REMOVE_ITEMS = BATCH_WRITES
# Calls that are sent together, after their items were written at once.
_GROUP_CALLS = 8
_TAKEN = (Status.REMOVED, Status.MOVED, Status.COMPLETED)
# The arguments of the script to remove items.
REMOVE_ARGS = {"keeps_leased": False, "is_first_look": False}
# Matches no data.
_OTHER_DATA = "-"
# A call, and the fingerprints of its items that the journal has.
Written = tuple[Located, Mapping[bytes, str]]
# Acts on calls; yields the outcomes of each in order.
Act = Callable[[Sequence[Written]], Iterator[OutcomeBatch]]


def remove(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    journal: Journal,
    *,
    expected: Expected = ANY,
    dry_run: bool = False,
) -> Outcomes:
    """Remove items with every trace of them; see `WorkQueue.remove_many`.

    They are written to the journal first; items that do not meet the conditions of `expected` any
    more are `CHANGED`. A few are removed in their order; of many, those in the lists come first.
    """
    act = by_script(queue, "remove", lambda _: REMOVE_ARGS, expected, dry_run=dry_run)
    run = SavedRun(queue, journal, act, expected, dry_run=dry_run)
    return Outcomes(run.apply(ids, "removing"))


def by_script(
    queue: Queue,
    script: str,
    args: Callable[[Sequence[bytes]], Mapping[str, object]],
    expected: Expected,
    *,
    dry_run: bool = False,
) -> Act:
    """What acts on items that were saved by one script.

    Args:
        queue: The queue.
        script: The script.
        args: Its own arguments for some IDs, besides those of `Located` and `Expected`.
        expected: The conditions that the items must still meet.
        dry_run: Change nothing.
    """
    if not queue.connection.set_no_touch():
        # Reading an item to save it has reset its idle time.
        expected = expected._replace(idle_s=None)

    def act(group: Sequence[Written]) -> Iterator[OutcomeBatch]:
        written = {id(call): fingerprints for call, fingerprints in group}

        def words(call: Located) -> Sequence[object]:
            saved = expected._replace(fingerprints=written[id(call)])
            named = {**call.args(), **saved.args(), **args(call.ids)}
            return script_words(script, saved.id_args(call.ids), **named)

        return send(queue, script, (call for call, _ in group), words, dry_run=dry_run)

    return act


class SavedRun:
    """A run over items that writes them to a journal before it acts on them.

    Args:
        queue: The queue.
        journal: The journal.
        act: Acts on the items that are written; an item that differs from the journal is `CHANGED`.
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
        queue.connection.set_no_touch()
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

    def apply(
        self, ids: Iterable[bytes | Flush], doing: str, *, items_max: int = REMOVE_ITEMS
    ) -> Iterator[OutcomeBatch]:
        """Act on the items with these IDs; see `apply_with`."""
        return apply_with(self._queue, self.perform, ids, doing, items_max=items_max)

    def perform(self, calls: Iterable[Located]) -> Iterator[OutcomeBatch]:
        """Save the items of each call, then act on those that have not changed.

        Yields:
            One batch for each call; `ELSEWHERE` for an ID that is not where it was seen.
        """
        for group in self._save(calls):
            outcomes: list[OutcomeBatch] = []
            left = dict.fromkeys(_saved_in(group))
            try:
                for batch in self._act(group):
                    outcomes.append(batch)
                    for item_id in batch.ids_with(*_TAKEN):
                        left.pop(item_id, None)
            except ConnectionLost:
                # The calls may have run, so the written items stay in doubt.
                raise
            except (ServerError, KeyboardInterrupt) as error:
                # An interrupt that was asked for came after all replies: what is left was not sent.
                if isinstance(error, ServerError) or self._queue.connection.stop.requested:
                    self._journal.record_removed_except(list(left))
                    yield from outcomes
                raise
            self._journal.record_removed_except(list(left))
            yield from outcomes

    def _save(self, calls: Iterable[Located]) -> Iterator[list[Written]]:
        """Save the items of the calls; yield the calls in groups, with the fingerprints."""
        group: list[Written] = []
        if self._saved is not None or self._dry_run:
            for call in calls:
                group.append((call, self._saved or self._chosen or {}))
                if len(group) == _GROUP_CALLS:
                    yield group
                    group = []
            if group:
                yield group
            return
        items: list[ItemSnapshot] = []
        for call, read in read_snapshots(self._queue, calls, Skipped()):
            fingerprints: dict[bytes, str] = {}
            kept = [item for item in read if self._is_to_be_saved(item, fingerprints)]
            items += self._in_their_order(call, kept)
            group.append((call, fingerprints))
            size = sum(len(item.data) for item in items)
            if len(group) == _GROUP_CALLS or size >= SNAPSHOT_BYTES:
                self._write(items)
                yield group
                group, items = [], []
        if group:
            self._write(items)
            yield group

    def _write(self, items: list[ItemSnapshot]) -> None:
        if items:
            self._journal.write([self._as_saved(item) for item in items])

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


def _saved_in(group: Iterable[Written]) -> list[bytes]:
    return [i for call, data in group for i in call.ids if data.get(i, _OTHER_DATA) != _OTHER_DATA]
