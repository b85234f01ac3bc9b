"""Moving items to another queue: `lua/ops/move.lua`, or a `Transfer` to one that is elsewhere."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rwq_cli.core.batches import BATCH_PLACES, BATCH_WRITES, Flush, in_batches
from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import WALK_ENTRIES, walk_scheduled
from rwq_cli.core.items.bulk import (
    Act,
    Journal,
    NoJournal,
    by_script,
    once_read,
    run,
    saving,
    unlisted,
)
from rwq_cli.core.items.remove import REMOVE_ARGS
from rwq_cli.core.items.restore import Line, OnConflict, item_args, restore_args
from rwq_cli.core.items.schedule import burial, schedule_args
from rwq_cli.core.keys import BURIED_GUARD, QueueKeys, hash_tag
from rwq_cli.core.lua import script_words
from rwq_cli.core.model import Lease, Outcome, OutcomeBatch, Outcomes, State, Status
from rwq_cli.core.server.commands import REFUSED
from rwq_cli.core.server.patience import CancelToken
from rwq_cli.core.state.expected import ANY, Expected, Located, fingerprint
from rwq_cli.core.state.probe import SNAPSHOT_BYTES, ItemSnapshot, Skipped, existing, read_snapshots
from rwq_cli.core.state.rules import Transit

_NO_LINES: Mapping[bytes, int] = {}


def move(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    to: bytes | Queue,
    journal: Journal,
    *,
    force: bool = False,
    expected: Expected = ANY,
    grace_s: float = GRACE_S,
    dry_run: bool = False,
) -> Outcomes:
    """Move items to the end of another queue; see `WorkQueue.move_many`.

    Each is in one of the two at every instant. What is moved is written to the journal first; items
    that do not meet the conditions of `expected` any more are `CHANGED`.
    """
    other = to if isinstance(to, Queue) else queue.sibling(to)
    return Outcomes(_moved(queue, other, ids, journal, expected, grace_s, force, dry_run=dry_run))


def move_back(
    queue: Queue,
    lines: Callable[[], Iterable[Line]],
    moved_to: bytes | Queue,
    *,
    file_id: bytes | None = None,
    grace_s: float = GRACE_S,
    dry_run: bool = False,
) -> Outcomes:
    """Move items back from the queue that they were moved to, by its name or handle.

    Items that are leased there, or now have other data, stay there. `lines` gives the items as they
    were; it is called twice. Lines of the file with this SHA-256 are marked as by `restore`. The
    outcomes are those of `move`, or `ALREADY_THERE` for an item that is back, `IMPORTED_BEFORE` if
    an interrupted run has moved it back.
    """
    saved: dict[bytes, str] = {}
    numbers: dict[bytes, int] = {}
    for number, item, _ in lines():
        assert isinstance(item, ItemSnapshot)
        saved[item.item_id], numbers[item.item_id] = fingerprint(item.data), number
    source = moved_to if isinstance(moved_to, Queue) else queue.sibling(moved_to)
    marks = b"" if file_id is None else queue.keys.undo(file_id)
    known = (saved, marks, numbers if marks else {})
    ids = (line.entry.item_id for line in lines())
    batches = _moved(source, queue, ids, NoJournal(), ANY, grace_s, known=known, dry_run=dry_run)
    return Outcomes(_already_there(queue, batches))


def _moved(
    queue: Queue,
    to: Queue,
    ids: Iterable[bytes | Flush],
    journal: Journal,
    expected: Expected,
    grace_s: float,
    force: bool = False,
    *,
    known: tuple[Mapping[bytes, str] | None, bytes, Mapping[bytes, int]] = (None, b"", _NO_LINES),
    dry_run: bool,
) -> Iterator[OutcomeBatch]:
    """Move items; `known` are the fingerprints, the key of the marks, and the lines of an undo."""
    # Before anything is held here.
    to.keys.check_new()
    to.check_one_slot()
    saved, marks, lines = known
    is_near = queue.connection.root is to.connection.root and (
        not queue.connection.is_cluster or hash_tag(queue.name) == hash_tag(to.name)
    )
    expected, looked_twice = once_read(queue, expected), expected.looked_twice
    act: Act
    finished: set[bytes] = set()
    if is_near:
        args = moving_args(to.keys, force=force, marks=marks, lines=lines)
        act = by_script(queue, "move", args, expected, dry_run=dry_run)
    else:
        act = transfer = Transfer(queue, to, force, expected, dry_run)
        for batch in transfer.finish():
            finished.update(batch.ids)
            if saved is not None:
                # By an undo: it moved these back.
                known_ids = batch.only(saved.keys())
                batch = OutcomeBatch.of(
                    each._replace(status=Status.MOVED) if each.status == Status.FINISHED else each
                    for each in known_ids
                )
            if len(batch):
                yield batch
    act = saving(
        queue, journal, act, expected, keeps_leased=not force, saved=saved, dry_run=dry_run
    )
    grace = None if force else grace_s
    left = (i for i in ids if i not in finished) if finished else ids
    yield from run(queue, act, left, "moving", grace_s=grace, looked_twice=looked_twice)


def moving_args(
    keys: QueueKeys, *, force: bool, marks: bytes = b"", lines: Mapping[bytes, int] = _NO_LINES
) -> Callable[[Sequence[bytes]], Mapping[str, object]]:
    """The arguments of `lua/ops/move.lua` to a queue, for some IDs."""
    known = {**keys.as_target, "keeps_leased": not force, "is_first_look": False, "marks": marks}
    return lambda ids: {**known, "lines": ";".join(str(lines[i]) for i in ids if lines)}


def _already_there(queue: Queue, batches: Iterable[OutcomeBatch]) -> Iterator[OutcomeBatch]:
    """Report missing items that are back in the queue as `ALREADY_THERE`."""
    for batch in batches:
        back = set(existing(queue, batch.ids_with(Status.MISSING)))
        yield OutcomeBatch.of(
            Outcome(each.item_id, Status.ALREADY_THERE) if each.item_id in back else each
            for each in batch
        )


_ITEMS = frozenset(state for state in State if state.is_item)
_SCHEDULED = frozenset(state for state in State if state.is_scheduled)
_STILL_BURIED = Expected(frozenset({State.BURIED}))
_PUSH_ARGS = {"which": "buried", "keeps_counts": True, "finishes_move": True}
# What a killed move has left is finished in parts of this many items.
_PART_ITEMS = 8 * BATCH_PLACES


@dataclass(frozen=True)
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

    queue: Queue
    to: Queue
    force: bool
    expected: Expected
    dry_run: bool

    @property
    def _leaving(self) -> bytes:
        return self._reason(self.to, is_copy=False)

    @property
    def _coming(self) -> bytes:
        return self._reason(self.queue, is_copy=True)

    def _reason(self, other: Queue, *, is_copy: bool) -> bytes:
        # It names the server if they have two: another move is to another one.
        is_one = self.queue.connection.root is self.to.connection.root
        server = None if is_one else other.connection.address.encode()
        return Transit(is_copy, other.name, server).reason

    def __call__(self, calls: Iterable[Located], is_first_look: bool) -> Iterator[OutcomeBatch]:
        known = [call for call in calls if call.ids]
        statuses: dict[bytes, Outcome] = {}
        # What was not saved was added, or its lease has ended, since it was read.
        movable = [i for call in known for i in (call.ids if self.dry_run else call.saved or ())]
        taken = set(existing(self.to, movable))
        leaves = set() if self.dry_run else {*movable} - taken
        if leaves:
            some = [call.only(leaves) for call in known]
            with self._to_its_end():
                for each in self._carry(self._buried(some, is_first_look, statuses)):
                    statuses[each.item_id] = each
        rest = [c.only(left) for c in known if (left := set(c.ids) - statuses.keys())]
        for each in self._looked_at(rest, is_first_look) if rest else ():
            statuses[each.item_id] = each
            if each.status is Status.MOVED and each.item_id in taken:
                statuses[each.item_id] = Outcome(each.item_id, Status.CONFLICT)
            elif each.status is Status.MOVED and not self.dry_run:
                statuses[each.item_id] = Outcome(each.item_id, Status.ELSEWHERE)
        for call in known:
            yield OutcomeBatch.of(statuses[item_id] for item_id in call.ids)
        self._check_stop()

    @contextmanager
    def _to_its_end(self) -> Iterator[None]:
        """In the block, a request to stop waits until what is in transit has arrived."""
        connections = self.queue.connection, self.to.connection
        kept = [each.stop for each in connections]
        try:
            for each in connections:
                each.stop = CancelToken()
            kept[0].is_polled = True
            yield
        except KeyboardInterrupt:
            connections[0].on_wait("rwq: items in transit are buried; the same mv finishes them")
            raise
        finally:
            kept[0].is_polled = False
            for each, stop in zip(connections, kept, strict=True):
                each.stop = stop

    def _check_stop(self) -> None:
        if self.queue.connection.stop.requested:
            raise KeyboardInterrupt

    def _buried(
        self, calls: Sequence[Located], is_first_look: bool, statuses: dict[bytes, Outcome]
    ) -> Iterator[ItemSnapshot]:
        """Bury items; yields those that are buried, and notes why others are not."""
        read = {item.item_id: item for call in calls for item in call.read}
        args = schedule_args(burial(self._leaving), b"", force=self.force)
        bury = by_script(self.queue, "schedule", args, self._movable)
        for batch in bury(calls, is_first_look):
            statuses.update((each.item_id, each) for each in batch)
            ids = batch.ids_with(Status.BURIED, Status.ALREADY_BURIED)
            statuses.update((i, Outcome(i, Status.CHANGED)) for i in ids)
            if read:
                # Buried with the data that it had then.
                yield from map(read.__getitem__, ids)
            else:
                yield from self._marked_items(ids)

    def _marked_items(self, ids: Sequence[bytes]) -> Iterator[ItemSnapshot]:
        for _, batch in read_snapshots(self.queue, unlisted(ids), Skipped()):
            yield from (item for item in batch if item.reason == self._leaving)

    @property
    def _movable(self) -> Expected:
        """Without `force`, what was delayed or buried since it was read stays so."""
        states = _ITEMS if self.expected.states is None else self.expected.states
        return self.expected if self.force else self.expected._replace(states=states - _SCHEDULED)

    def _looked_at(self, calls: Sequence[Located], is_first_look: bool) -> Iterator[Outcome]:
        """The outcomes if this were a removal; `MOVED` for the items that can be moved."""
        args = {**REMOVE_ARGS, "keeps_leased": not self.force}
        look = by_script(self.queue, "remove", args, self.expected, dry_run=True)
        for batch in look(calls, is_first_look):
            for each in batch:
                is_movable = each.status is Status.REMOVED
                yield each._replace(status=Status.MOVED) if is_movable else each

    def _carry(self, items: Iterable[ItemSnapshot]) -> Iterator[Outcome]:
        """Copy items that are buried here to the other queue, remove them here, kick them there:
        each batch while the next ones are still on the way before it."""
        prints: dict[bytes, str] = {}
        conflicts: list[bytes] = []
        stale: dict[bytes, Status] = {}
        begun = moved = 0

        def counted() -> Iterator[ItemSnapshot]:
            nonlocal begun
            for item in items:
                begun += 1
                yield item

        def removals() -> Iterator[Located]:
            for copied, others in self._copied(counted()):
                conflicts.extend(others)
                known = {item.item_id: fingerprint(item.data) for item in copied}
                prints.update(known)
                yield from (call._replace(saved=known) for call in unlisted(known))

        def removed() -> Iterator[Located]:
            remove = by_script(self.queue, "remove", REMOVE_ARGS, _STILL_BURIED)
            for batch in remove(removals(), False):
                stale.update((i.item_id, i.status) for i in batch if i.status != Status.REMOVED)
                yield from unlisted(batch.ids_with(Status.REMOVED))

        try:
            for batch in by_script(self.to, "push_scheduled", _PUSH_ARGS)(removed(), False):
                moved += len(batch)
                yield from (Outcome(item_id, Status.MOVED) for item_id in batch.ids)
            _push(self.queue, conflicts)
            yield from (Outcome(item_id, Status.CONFLICT) for item_id in conflicts)
            # What was changed or completed here in between has an old copy there.
            _remove(self.to, {item_id: prints[item_id] for item_id in stale})
            _push(self.queue, stale)
        except ServerError as error:
            error.in_doubt, error.doubtful = True, begun - moved
            error.hint = "some are still buried in transit; run the same rwq mv again"
            raise
        for item_id, status in stale.items():
            is_gone = status is Status.MISSING
            yield Outcome(item_id, Status.MISSING if is_gone else Status.CHANGED)

    def _copied(
        self, items: Iterable[ItemSnapshot]
    ) -> Iterator[tuple[list[ItemSnapshot], list[bytes]]]:
        """Copy items to the other queue, as buried ones in their order; yields those of each call
        that are there now, and the IDs of the others."""
        now_ms, guard = self.to.now_ms(), Lease(BURIED_GUARD + self._coming, None)
        limits = {"items_max": BATCH_WRITES, "size_max": SNAPSHOT_BYTES}
        batches = in_batches(items, **limits, size_of=lambda item: len(item.data))

        def calls() -> Iterator[tuple[list[ItemSnapshot], Sequence[object]]]:
            at = 0
            for batch in batches:
                rest: list[object] = []
                for item in batch:
                    at += 1
                    buried_ms = now_ms + at / 1000
                    copy = item._replace(place=None, lease=guard, due_ms=None, buried_ms=buried_ms)
                    rest += item_args(at, copy)
                yield batch, script_words("restore", rest, **restore_args(OnConflict.FAIL))

        for batch, reply in self.to.run_each("restore", calls()):
            if reply is not REFUSED:
                outcomes = OutcomeBatch.from_reply([item.item_id for item in batch], reply)
                there = set(outcomes.ids_with(Status.IMPORTED, Status.ALREADY_THERE))
                others = [item_id for item_id in outcomes.ids if item_id not in there]
                yield [item for item in batch if item.item_id in there], others

    def finish(self) -> Iterator[OutcomeBatch]:
        """Finish what a killed move between these queues has left, in order: what has gone from
        here was in front."""
        leaving = self._marked(self.queue, self._leaving)
        for ids in in_batches(self._marked(self.to, self._coming), items_max=_PART_ITEMS):
            there = set(existing(self.queue, ids))
            gone = [item_id for item_id in ids if item_id not in there]
            if not self.dry_run:
                _push(self.to, gone)
                # It was kicked here since: the copy is not needed.
                copies = read_snapshots(self.to, unlisted(there.difference(leaving)), Skipped())
                _remove(self.to, {i.item_id: fingerprint(i.data) for _, b in copies for i in b})
            yield OutcomeBatch.all_of(gone, Status.FINISHED)
        if self.dry_run:
            yield OutcomeBatch.all_of(leaving, Status.FINISHED)
            return
        for ids in in_batches(leaving, items_max=_PART_ITEMS):
            with self._to_its_end():
                carried = list(self._carry(self._marked_items(ids)))
            yield OutcomeBatch.of(
                each._replace(status=Status.FINISHED) if each.status is Status.MOVED else each
                for each in carried
            )
            self._check_stop()

    def _marked(self, queue: Queue, reason: bytes) -> list[bytes]:
        """The buried items that have this reason."""
        found: list[bytes] = []
        for page in walk_scheduled(queue, "buried", page_size=WALK_ENTRIES):
            ids = [item_id for item_id, _ in page]
            guards = queue.call("MGET", *map(queue.keys.lease, ids))
            pairs = zip(ids, guards, strict=True)
            found += [item_id for item_id, guard in pairs if guard == BURIED_GUARD + reason]
        return found


def _remove(queue: Queue, prints: Mapping[bytes, str]) -> None:
    """Remove buried items that still have this data."""
    expected = _STILL_BURIED._replace(fingerprints=prints)
    deque(by_script(queue, "remove", REMOVE_ARGS, expected)(unlisted(prints), False), maxlen=0)


def _push(queue: Queue, ids: Collection[bytes]) -> None:
    """Put buried items at the end of the main list, with their counts of returns."""
    deque(by_script(queue, "push_scheduled", _PUSH_ARGS)(unlisted(ids), False), maxlen=0)
