"""Moving items to a queue that no script reaches together with theirs: in another slot of a
cluster, in another database or on another server.

Each item is buried in its queue, copied to the other one as a buried item, removed here, and kicked
there. So at every instant it exists, and nobody can lease it twice: a buried item is left alone by
every cleaner and worker. A move that was killed leaves items that say where they were going; the
next move of the same kind finishes those first:

| here            | there           | what is done                                  |
| --------------- | --------------- | --------------------------------------------- |
| buried to move  | nothing, or the | copied again, removed, kicked                 |
|                 | copy            |                                               |
| gone            | the copy        | kicked                                        |
| kicked, leased  | the copy        | the copy is removed: the item stayed          |
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rwq_cli.core.batches import BATCH_PLACES, BATCH_WRITES, in_batches
from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import WALK_ENTRIES, walk_scheduled
from rwq_cli.core.items.bulk import by_script
from rwq_cli.core.items.remove import REMOVE_ARGS
from rwq_cli.core.items.restore import OnConflict, item_args, restore_args
from rwq_cli.core.items.schedule import burial, schedule_args
from rwq_cli.core.keys import BURIED_GUARD, MOVING, MOVING_HERE
from rwq_cli.core.lua import script_words
from rwq_cli.core.model import Lease, Outcome, OutcomeBatch, State, Status
from rwq_cli.core.server.commands import REFUSED
from rwq_cli.core.state.expected import Expected, fingerprint
from rwq_cli.core.state.located import Located
from rwq_cli.core.state.snapshot import SNAPSHOT_BYTES, ItemSnapshot, Skipped, read_snapshots

# What a killed move has left is finished in parts of this many items.
_PART_ITEMS = 8 * BATCH_PLACES


@dataclass(frozen=True)
class Transfer:
    """An `Act` that moves items, whose data the caller has read, to a queue elsewhere.

    With `force`, leased items are moved, too, and their leases end.
    """

    queue: Queue
    to: Queue
    force: bool
    expected: Expected
    dry_run: bool

    @property
    def _leaving(self) -> bytes:
        return MOVING + b" to %b; the same rwq mv finishes it" % self._named(self.to)

    @property
    def _coming(self) -> bytes:
        return MOVING_HERE + b" from %b; the same rwq mv finishes it" % self._named(self.queue)

    def _named(self, queue: Queue) -> bytes:
        """The queue's name, and its server if they have two: another move is to another one."""
        if self.queue.connection.root is self.to.connection.root:
            return queue.name
        return b"%b on %b" % (queue.name, queue.connection.address.encode())

    def __call__(self, calls: Iterable[Located], is_first_look: bool) -> Iterator[OutcomeBatch]:
        known = [call for call in calls if call.ids]
        statuses = {each.item_id: each for each in self._looked_at(known, is_first_look)}
        movable = [i for i, each in statuses.items() if each.status is Status.MOVED]
        taken = _existing(self.to, movable)
        statuses.update((i, Outcome(i, Status.CONFLICT)) for i in taken)
        if not self.dry_run:
            leaves = set(movable) - taken
            args = schedule_args(burial(self._leaving), b"", force=self.force)
            bury = by_script(self.queue, "schedule", args, self.expected)
            for batch in bury((call.only(leaves) for call in known), is_first_look):
                statuses.update((each.item_id, each) for each in batch)
            buried = (Status.BURIED, Status.ALREADY_BURIED)
            leaving = [i for i in movable if statuses[i].status in buried]
            try:
                statuses.update((each.item_id, each) for each in self._carry(leaving))
            except ServerError as error:
                error.in_doubt, error.doubtful = True, len(leaving)
                error.hint = f"still buried in transit: {len(leaving)}; run the same rwq mv again"
                raise
        for call in known:
            yield OutcomeBatch.of(statuses[item_id] for item_id in call.ids)

    def _looked_at(self, calls: Sequence[Located], is_first_look: bool) -> Iterator[Outcome]:
        """The outcomes if this were a removal; `MOVED` for the items that can be moved."""
        args = {**REMOVE_ARGS, "keeps_leased": not self.force}
        look = by_script(self.queue, "remove", args, self.expected, dry_run=True)
        read = {item_id for call in calls for item_id in call.saved or ()}
        for batch in look(calls, is_first_look):
            for each in batch:
                # What was not saved was added, or its lease has ended, since it was read.
                is_known = self.dry_run or each.item_id in read
                status = Status.MOVED if is_known else Status.ELSEWHERE
                yield Outcome(each.item_id, status) if each.status is Status.REMOVED else each

    def _carry(self, ids: Sequence[bytes]) -> Iterator[Outcome]:
        """Copy items that are buried here to the other queue, remove them here, kick them there."""
        read = read_snapshots(self.queue, _unlisted(ids), Skipped())
        items = [item for _, batch in read for item in batch if item.reason == self._leaving]
        copied = self._copy(items)
        self._push(self.queue, [item.item_id for item in items if item.item_id not in copied])
        prints = {i.item_id: fingerprint(i.data) for i in items if i.item_id in copied}
        # An item that was changed here in between has an old copy there.
        stale = _remove(self.queue, prints)
        _remove(self.to, {item_id: prints[item_id] for item_id in stale})
        self._push(self.queue, stale)
        moved = dict.fromkeys(item_id for item_id in prints if item_id not in stale)
        self._push(self.to, moved)
        conflicts = {item.item_id for item in items} - copied
        for item_id in ids:
            kept = Status.CONFLICT if item_id in conflicts else Status.CHANGED
            yield Outcome(item_id, Status.MOVED if item_id in moved else kept)

    def _copy(self, items: Sequence[ItemSnapshot]) -> set[bytes]:
        """Copy items to the other queue, as buried ones in their order; returns the copied ones."""
        now_ms = self.to.now_ms()
        guard = Lease(BURIED_GUARD + self._coming, None)
        batches = list(
            in_batches(
                items,
                items_max=BATCH_WRITES,
                size_max=SNAPSHOT_BYTES,
                size_of=lambda item: len(item.data),
            )
        )

        def words() -> Iterator[Sequence[object]]:
            at = 0
            for batch in batches:
                rest: list[object] = []
                for item in batch:
                    at += 1
                    buried_ms = now_ms + at / 1000
                    copy = item._replace(place=None, lease=guard, due_ms=None, buried_ms=buried_ms)
                    rest += item_args(at, copy)
                yield script_words("restore", rest, **restore_args(OnConflict.FAIL))

        copied: set[bytes] = set()
        for batch, reply in zip(batches, self.to.run_each("restore", words()), strict=False):
            if reply is not REFUSED:
                outcomes = OutcomeBatch.from_reply([item.item_id for item in batch], reply)
                copied.update(outcomes.ids_with(Status.IMPORTED, Status.ALREADY_THERE))
        return copied

    def _push(self, queue: Queue, ids: Iterable[bytes]) -> None:
        """Put buried items at the end of the main list, with their counts of returns."""
        args = {"which": "buried", "keeps_counts": True, "finishes_move": True}
        deque(by_script(queue, "push_scheduled", args)(_unlisted(ids), False), maxlen=0)

    def finish(self) -> None:
        """Finish what a killed move between these queues has left, in order: what has gone from
        here was in front."""
        leaving = self._marked(self.queue, self._leaving)
        for ids in in_batches(self._marked(self.to, self._coming), items_max=_PART_ITEMS):
            there = _existing(self.queue, ids)
            self._push(self.to, [item_id for item_id in ids if item_id not in there])
            # It was kicked here since: the copy is not needed.
            copies = read_snapshots(self.to, _unlisted(there.difference(leaving)), Skipped())
            _remove(self.to, {i.item_id: fingerprint(i.data) for _, b in copies for i in b})
        for ids in in_batches(leaving, items_max=_PART_ITEMS):
            deque(self._carry(ids), maxlen=0)

    def _marked(self, queue: Queue, reason: bytes) -> list[bytes]:
        """The buried items that have this reason."""
        found: list[bytes] = []
        for page in walk_scheduled(queue, "buried", page_size=WALK_ENTRIES):
            ids = [item_id for item_id, _ in page]
            guards = queue.call("MGET", *map(queue.keys.lease, ids))
            pairs = zip(ids, guards, strict=True)
            found += [item_id for item_id, guard in pairs if guard == BURIED_GUARD + reason]
        return found


def _remove(queue: Queue, prints: Mapping[bytes, str]) -> set[bytes]:
    """Remove buried items that still have this data; returns the others that exist."""
    expected = Expected(frozenset({State.BURIED}), fingerprints=prints)
    batches = by_script(queue, "remove", REMOVE_ARGS, expected)(_unlisted(prints), False)
    return {i for batch in batches for i in batch.ids_with(Status.CHANGED, Status.ELSEWHERE)}


def _unlisted(ids: Iterable[bytes]) -> Iterator[Located]:
    """IDs of buried items, which are in no list."""
    for batch in in_batches(list(ids), items_max=BATCH_PLACES):
        yield Located.at_places(batch, [""] * len(batch), 0)


def _existing(queue: Queue, ids: Sequence[bytes]) -> set[bytes]:
    """Those of the IDs that have data in a queue."""
    exist = queue.call_all([("EXISTS", queue.keys.item(item_id)) for item_id in ids])
    return {item_id for item_id, there in zip(ids, exist, strict=True) if there}
