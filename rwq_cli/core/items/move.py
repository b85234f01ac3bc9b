"""Moving items to another queue: `lua/ops/move.lua`, or a `Transfer` to one that is elsewhere."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rwq_cli.core.batches import BUDGET, Flush, ProgressListener, in_batches
from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import ScheduledCursor
from rwq_cli.core.items.bulk import (
    GROUP_CALLS,
    Journal,
    by_script,
    once_read,
    run,
    saving,
    unlisted,
)
from rwq_cli.core.items.complete import REMOVE_ARGS
from rwq_cli.core.items.restore import Line, restore
from rwq_cli.core.items.schedule import put_args
from rwq_cli.core.keys import BURIED_GUARD, hash_tag
from rwq_cli.core.model import Lease, Outcome, OutcomeBatch, Outcomes, State, Status
from rwq_cli.core.server.patience import CancelToken
from rwq_cli.core.state.expected import ANY, Expected, Located, token_of
from rwq_cli.core.state.probe import ItemSnapshot, Skipped, existing, read_snapshots
from rwq_cli.core.state.rules import Transit


def move(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    to: bytes | str | Queue,
    journal: Journal | None = None,
    *,
    force: bool = False,
    expected: Expected = ANY,
    grace_s: float = GRACE_S,
    undoes: tuple[bytes, Mapping[bytes, int] | None] = (b"", None),
    dry_run: bool = False,
) -> Outcomes:
    """Move items to the end of another queue; see `WorkQueue.move_many`.

    Each is in one of the two at every instant. `undoes` are the key of the marks of a file, and the
    number of each line.
    """
    other = queue.sibling(to)

    def batches() -> Iterator[OutcomeBatch]:
        # Before anything is held here.
        other.keys.check_new()
        other.check_one_slot()
        is_near = queue.connection.root is other.connection.root and (
            not queue.connection.is_cluster or hash_tag(queue.name) == hash_tag(other.name)
        )
        finished: set[bytes] = set()
        if is_near:
            args, both = moving_args(other.name, force, *undoes), (expected, journal)
            how: dict[str, Any] = {"keeps_leased": not force}
            act = by_script(queue, "move", args, *both, dry_run=dry_run, **how)
        else:
            act = transfer = Transfer(queue, other, force, once_read(queue, expected), dry_run)
            for batch in transfer.finish():
                finished.update(batch.ids)
                yield batch
            if not dry_run:
                act = saving(queue, journal, act, expected, keeps_leased=not force)
        left = (i for i in ids if i not in finished) if finished else ids
        grace = None if force else grace_s
        yield from run(queue, act, left, "moving", expected, grace_s=grace)

    return Outcomes(batches())


def move_back(
    queue: Queue,
    lines: Iterable[Line],
    moved_to: bytes | Queue,
    *,
    file_id: bytes | None = None,
    grace_s: float = GRACE_S,
    dry_run: bool = False,
) -> Outcomes:
    """Move items back from the queue that they were moved to, by its name or handle.

    Items that are leased there, or now have other data, stay there. `lines` gives the items as they
    were. Lines of the file with this SHA-256 are marked as by `restore`. The outcomes are those of
    `move`, or `ALREADY_THERE` for an item that is back, `IMPORTED_BEFORE` if an interrupted run has
    moved it back.
    """
    tokens: dict[bytes, bytes] = {}
    numbers: dict[bytes, int] = {}
    for number, item, _ in lines:
        assert isinstance(item, ItemSnapshot)
        tokens[item.item_id], numbers[item.item_id] = token_of(item.data), number
    undoes = (b"", None) if file_id is None else (queue.keys.undo(file_id), numbers)
    how: dict[str, Any] = {"grace_s": grace_s, "undoes": undoes, "dry_run": dry_run}
    moved = move(queue.sibling(moved_to), tokens, queue, expected=Expected(tokens=tokens), **how)

    def batches() -> Iterator[OutcomeBatch]:
        for batch in moved.batches:
            found = batch.only(tokens.keys())
            there = existing(queue, found.ids_with(Status.MISSING))
            # What an undo finishes, it has moved back.
            now = dict.fromkeys(found.ids_with(Status.FINISHED), Status.MOVED)
            now |= dict.fromkeys(there, Status.ALREADY_THERE)
            yield OutcomeBatch.of(
                each._replace(status=now.get(each.item_id, each.status)) for each in found
            )

    return Outcomes(batches())


def moving_args(
    to: bytes, force: bool = False, marks: bytes = b"", lines: Mapping[bytes, int] | None = None
) -> Callable[[Sequence[bytes]], Mapping[str, object]]:
    """The arguments of `lua/ops/move.lua` to a queue, for some IDs."""
    known = {"to": to, "keeps_leased": not force, "is_first_look": False, "marks": marks}
    return lambda ids: {**known, "lines": ";".join(str(lines[i]) for i in ids if lines)}


_ITEMS = frozenset(state for state in State if state.is_item)
_SCHEDULED = frozenset(state for state in State if state.is_scheduled)
_STILL_BURIED = Expected(frozenset({State.BURIED}))
_PUSH_ARGS = {"which": "buried", "keeps_counts": True, "finishes_move": True}
# What a killed move has left is finished in parts of this many items.
_PART_ITEMS = 6 * BUDGET.items


class Transfer:
    """An `Act` that moves items, whose data the caller has read, to a queue that no script reaches
    together with theirs: in another slot of a cluster, another database or on another server.

    Each item is buried in its queue, copied to the other one as a buried item, removed here, and
    kicked there. So at every instant it exists, and nobody can lease it twice: a buried item is
    left alone by every cleaner and worker. A move that was killed leaves items that say where they
    were going; the next move of the same kind finishes those first:

    | here            | there           | what is done                                  |
    | --------------- | --------------- | --------------------------------------------- |
    | buried to move  | nothing, or the | copied again, removed, kicked                 |
    |                 | copy            |                                               |
    | gone            | the copy        | kicked                                        |
    | kicked, leased  | the copy        | the copy is removed: the item stayed          |

    With `force`, leased items are moved, too, and their leases end.
    """

    def __init__(
        self, queue: Queue, to: Queue, force: bool, expected: Expected, dry_run: bool
    ) -> None:
        self._queue, self._to, self._dry_run = queue, to, dry_run
        # They name the server if they have two: another move is to another one.
        has_two = queue.connection.root is not to.connection.root
        here, there = (
            each.connection.address.encode() if has_two else None for each in (queue, to)
        )
        self._leaving = Transit(False, to.name, there).reason
        self._coming = Transit(True, queue.name, here).reason
        # To a queue that never exists.
        args = moving_args(queue.keys.absent, force=force)
        self._look = by_script(queue, "move", args, expected, dry_run=True)
        if not force:
            # What was delayed or buried since it was read stays so.
            states = _ITEMS if expected.states is None else expected.states
            expected = expected._replace(states=states - _SCHEDULED)
        hold = put_args("buried", b"", reason=self._leaving, force=force)
        self._bury = by_script(queue, "put", hold, expected)

    def __call__(self, calls: Iterable[Located], is_first_look: bool) -> Iterator[OutcomeBatch]:
        for group in in_batches((call for call in calls if call.ids), items_max=GROUP_CALLS):
            looks = self._look(group, is_first_look)
            statuses = {each.item_id: each for batch in looks for each in batch}
            movable = [i for i, each in statuses.items() if each.status is Status.MOVED]
            taken = set(existing(self._to, movable))
            statuses.update((i, Outcome(i, Status.CONFLICT)) for i in taken)
            free, some = set(movable) - taken, list[Located]()
            for call in () if self._dry_run else group:
                # The others were added, or their leases have ended, since the items were read.
                late = Status.CHANGED if call.how == "name" else Status.ELSEWHERE
                unread = free.intersection(call.ids) - (call.saved or {}).keys()
                statuses.update((item_id, Outcome(item_id, late)) for item_id in unread)
                some.append(call.only(free - unread))
            if some:
                with self._to_its_end():
                    held = self._held(some, is_first_look, statuses)
                    statuses.update((each.item_id, each) for each in self._carry(held))
            for call in group:
                yield OutcomeBatch.of(statuses[item_id] for item_id in call.ids)
            if self._queue.connection.stop.requested:
                raise KeyboardInterrupt

    def _held(
        self, calls: Sequence[Located], is_first_look: bool, statuses: dict[bytes, Outcome]
    ) -> Iterator[ItemSnapshot]:
        """Bury items; yields those that are buried, and notes why others are not."""
        read = {item.item_id: item for call in calls for item in call.read}
        for batch in self._bury(calls, is_first_look):
            ids = batch.ids_with(Status.BURIED, Status.ALREADY_BURIED)
            statuses.update((each.item_id, each) for each in batch)
            statuses.update((i, Outcome(i, Status.CHANGED)) for i in ids)
            # With the data that they had when they were read.
            yield from map(read.__getitem__, ids)

    @contextmanager
    def _to_its_end(self) -> Iterator[None]:
        """In the block, a request to stop waits until what is in transit has arrived; only the move
        has a progress, not its steps."""
        connections = self._queue.connection, self._to.connection
        kept = [(each.stop, each.progress) for each in connections]
        stop = kept[0][0]
        try:
            for each in connections:
                each.stop, each.progress = CancelToken(), ProgressListener()
            stop.is_polled = True
            yield
        except KeyboardInterrupt:
            connections[0].on_wait("rwq: items in transit are buried; the same mv finishes them")
            raise
        finally:
            stop.is_polled = False
            for each, before in zip(connections, kept, strict=True):
                each.stop, each.progress = before

    def _carry(
        self, items: Iterable[ItemSnapshot], done: Status = Status.MOVED
    ) -> Iterator[Outcome]:
        """Copy items that are buried here to the other queue, remove them here, kick them there."""
        limits = {"items_max": _PART_ITEMS, "size_max": 4 * BUDGET.bytes}
        for part in in_batches(items, **limits, size_of=lambda item: len(item.data)):
            tokens = {item.item_id: token_of(item.data) for item in part}
            moved = 0
            try:
                there: dict[bytes, None] = {}
                # As buried ones in their order.
                now_ms, guard = self._to.now_ms(), Lease(BURIED_GUARD + self._coming, None)
                waits = (item._replace(place=None, lease=guard, due_ms=None) for item in part)
                buried = (i._replace(buried_ms=now_ms + at / 1000) for at, i in enumerate(waits, 1))
                for batch in restore(self._to, (Line(0, item) for item in buried)).batches:
                    ids = batch.ids_with(Status.IMPORTED, Status.ALREADY_THERE)
                    there.update(dict.fromkeys(ids))
                stale = _remove(self._queue, {item_id: tokens[item_id] for item_id in there})
                _push(self._to, [item_id for item_id in there if item_id not in stale])
                moved = len(there) - len(stale)
                # What was changed or completed here in between has an old copy there.
                _remove(self._to, {item_id: tokens[item_id] for item_id in stale})
                _push(self._queue, [i for i in tokens if i in stale or i not in there])
            except ServerError as error:
                error.in_doubt, error.doubtful = True, len(part) - moved
                error.hint = "some are still buried in transit; run the same rwq mv again"
                raise
            for item_id in tokens:
                status = done if item_id in there else Status.CONFLICT
                if item_id in stale:
                    is_gone = stale[item_id] is Status.MISSING
                    status = Status.MISSING if is_gone else Status.CHANGED
                yield Outcome(item_id, status)

    def finish(self) -> Iterator[OutcomeBatch]:
        """Finish what a killed move between these queues has left, in order: what has gone from
        here was in front."""
        leaving = _held_for(self._queue, self._leaving)
        for ids in in_batches(_held_for(self._to, self._coming), items_max=_PART_ITEMS):
            there = set(existing(self._queue, ids))
            gone = [item_id for item_id in ids if item_id not in there]
            if not self._dry_run:
                _push(self._to, gone)
                # It was kicked here since: the copy is not needed.
                copies = _read(self._to, there.difference(leaving))
                _remove(self._to, {item.item_id: token_of(item.data) for item in copies})
            yield OutcomeBatch.all_of(gone, Status.FINISHED)
        if self._dry_run:
            yield OutcomeBatch.all_of(leaving, Status.FINISHED)
            return
        for ids in in_batches(leaving, items_max=_PART_ITEMS):
            with self._to_its_end():
                held = (i for i in _read(self._queue, ids) if i.reason == self._leaving)
                carried = OutcomeBatch.of(self._carry(held, Status.FINISHED))
            yield carried
            if self._queue.connection.stop.requested:
                raise KeyboardInterrupt


def _held_for(queue: Queue, reason: bytes) -> list[bytes]:
    """The buried items that have this reason."""
    found: list[bytes] = []
    for ids in ScheduledCursor(queue, "buried"):
        guards = queue.call("MGET", *map(queue.keys.lease, ids))
        pairs = zip(ids, guards, strict=True)
        found += [item_id for item_id, guard in pairs if guard == BURIED_GUARD + reason]
    return found


def _read(queue: Queue, ids: Iterable[bytes]) -> Iterator[ItemSnapshot]:
    """Buried items."""
    return (i for _, batch in read_snapshots(queue, unlisted(ids), Skipped()) for i in batch)


def _remove(queue: Queue, tokens: Mapping[bytes, bytes]) -> dict[bytes, Status]:
    """Remove buried items that still have this data; returns the others, with why they stay."""
    remove = by_script(queue, "complete", REMOVE_ARGS, _STILL_BURIED._replace(tokens=tokens))
    outcomes = (each for batch in remove(unlisted(tokens), False) for each in batch)
    return {each.item_id: each.status for each in outcomes if each.status != Status.REMOVED}


def _push(queue: Queue, ids: Collection[bytes]) -> None:
    """Put buried items at the end of the main list, with their counts of returns."""
    deque(by_script(queue, "push_scheduled", _PUSH_ARGS)(unlisted(ids), False), maxlen=0)
