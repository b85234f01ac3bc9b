"""Moving items between two slots of a cluster, which no script can reach at once.

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

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rwq_cli.core.batches import in_batches
from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import walk_scheduled
from rwq_cli.core.items.lease_policy import LeasePolicy
from rwq_cli.core.items.remove import REMOVE_ITEMS, Remover, remove_args
from rwq_cli.core.items.restore import OnConflict, item_args, restore_args
from rwq_cli.core.items.schedule import Burial, schedule_args
from rwq_cli.core.keys import BURIED_GUARD
from rwq_cli.core.model import Lease, Outcome, OutcomeBatch, State, Status
from rwq_cli.core.state.expected import ANY, Expected, fingerprint
from rwq_cli.core.state.list_range import ListRange, Where
from rwq_cli.core.state.snapshot import ItemSnapshot, Skipped, read_snapshots

_BURIED = (Status.BURIED, Status.ALREADY_BURIED)
_COPIED = (Status.IMPORTED, Status.ALREADY_THERE)


class SlotMover(Remover):
    """A `Remover` that moves items to a queue in another slot."""

    def __init__(self, queue: Queue, *args: Any, **options: Any) -> None:
        super().__init__(queue, *args, **options)
        assert self._destination is not None
        self._to = queue.sibling(self._destination.keys.name)
        self._leaving = b"being moved to %b; the same rwq mv finishes it" % self._to.name
        self._coming = b"being moved here from %b; the same rwq mv finishes it" % queue.name

    def _take(self, seen: ListRange, fingerprints: Mapping[bytes, str]) -> OutcomeBatch:
        known = dict(fingerprints)
        if self._dry_run:
            for _ in self._read(seen, known):
                pass
        movable = [item_id for item_id in seen.ids if item_id in known]
        statuses = self._others(seen, [item_id for item_id in seen.ids if item_id not in known])
        exist = self._to.call_all([("EXISTS", self._to.keys.item(i)) for i in movable])
        taken = {item_id for item_id, there in zip(movable, exist, strict=True) if there}
        buried = self._bury(seen, [i for i in movable if i not in taken], known)
        statuses.update((each.item_id, each) for each in buried)
        leaving = buried.ids_with(*_BURIED)
        for item_id in leaving:
            statuses[item_id] = Outcome(item_id, Status.MOVED)
        for item_id in taken:
            statuses[item_id] = Outcome(item_id, Status.CONFLICT)
        if leaving and not self._dry_run:
            try:
                statuses.update((each.item_id, each) for each in self._carry(leaving))
            except ServerError as error:
                error.in_doubt, error.doubtful = True, len(leaving)
                error.hint = f"still buried in transit: {len(leaving)}; run the same rwq mv again"
                raise
        return OutcomeBatch.of(statuses[item_id] for item_id in seen.ids)

    def _others(self, seen: ListRange, ids: Sequence[bytes]) -> dict[bytes, Outcome]:
        """The outcomes of items that are not moved: held, of the wrong type, gone or elsewhere."""
        if not ids:
            return {}
        args = remove_args(seen._replace(ids=ids), self._token, Expected(fingerprints={}))
        reply = self._queue.run("remove", *args, dry_run=True)
        outcomes: dict[bytes, Outcome] = {}
        # It was added since it was read.
        changed = Status.CHANGED if seen.where is Where.NAME else Status.ELSEWHERE
        for each in OutcomeBatch.from_reply(ids, reply):
            status = changed if each.status is Status.REMOVED else each.status
            if (holder := self.held.get(each.item_id)) is not None:
                outcomes[each.item_id] = Outcome(each.item_id, Status.NOT_OWNER, holder)
            else:
                outcomes[each.item_id] = Outcome(each.item_id, status)
        return outcomes

    def _bury(
        self, seen: ListRange, ids: Sequence[bytes], fingerprints: Mapping[bytes, str]
    ) -> OutcomeBatch:
        """Bury items here; called even without items, for a page that is to be rotated."""
        assert self._destination is not None
        expected = self._expected._replace(fingerprints=fingerprints)
        policy = LeasePolicy(b"", self._destination.force)
        own_args = schedule_args(policy, Burial(self._leaving), is_first_look=self._is_first_look)
        args = (*seen.args(self._token), *expected.args(), *own_args, *expected.id_args(ids))
        reply = self._queue.run("schedule", *args, dry_run=self._dry_run)
        return OutcomeBatch.from_reply(ids, reply)

    def _carry(self, ids: Sequence[bytes]) -> OutcomeBatch:
        """Copy items that are buried here to the other queue, remove them here, kick them there."""
        seen = ListRange(Where.UNLISTED, 0, 0, ids)
        items = [
            item
            for batch in read_snapshots(self._queue, seen, Skipped(), b"", is_trusted=False)
            for item in batch
            if item.reason == self._leaving
        ]
        outcomes = {item_id: Outcome(item_id, Status.CHANGED) for item_id in ids}
        copied = set(self._copy(items).ids_with(*_COPIED))
        refused = [item.item_id for item in items if item.item_id not in copied]
        self._push(self._queue, refused)
        outcomes.update((item_id, Outcome(item_id, Status.CONFLICT)) for item_id in refused)
        prints = {i.item_id: fingerprint(i.data) for i in items if i.item_id in copied}
        removed = self._remove(self._queue, prints)
        # An item that was changed here in between has an old copy there.
        stale = removed.ids_with(Status.CHANGED, Status.ELSEWHERE)
        self._remove(self._to, {item_id: prints[item_id] for item_id in stale})
        self._push(self._queue, stale)
        gone = [item_id for item_id in prints if item_id not in set(stale)]
        self._push(self._to, gone)
        for item_id in gone:
            outcomes[item_id] = Outcome(item_id, Status.MOVED)
        return OutcomeBatch.of(outcomes.values())

    def _copy(self, items: Sequence[ItemSnapshot]) -> OutcomeBatch:
        """Copy items to the other queue, as buried ones in their order."""
        now_ms = self._to.now_ms()
        guard = Lease(BURIED_GUARD + self._coming, None)
        args = restore_args(OnConflict.FAIL)
        for at, item in enumerate(items):
            buried_ms = now_ms + at / 1000
            copy = item._replace(place=None, lease=guard, due_ms=None, buried_ms=buried_ms)
            args += item_args(at, copy)
        reply = self._to.run("restore", *args)
        return OutcomeBatch.from_reply([item.item_id for item in items], reply)

    def _remove(self, queue: Queue, fingerprints: Mapping[bytes, str]) -> OutcomeBatch:
        """Remove buried items that still have this data."""
        ids = list(fingerprints)
        if not ids:
            return OutcomeBatch.of(())
        seen = ListRange(Where.UNLISTED, 0, 0, ids)
        expected = Expected(frozenset({State.BURIED}), fingerprints=fingerprints)
        reply = queue.run("remove", *remove_args(seen, b"", expected))
        return OutcomeBatch.from_reply(ids, reply)

    def _push(self, queue: Queue, ids: Sequence[bytes]) -> None:
        """Put buried items at the end of the main list, with their counts of returns."""
        if ids:
            seen = ListRange(Where.UNLISTED, 0, 0, ids)
            queue.run("push_scheduled", *seen.args(b""), *ANY.args(), "moved", *ids)

    def finish(self) -> None:
        for ids in self._marked(self._queue, self._leaving):
            self._carry(ids)
        for ids in self._marked(self._to, self._coming):
            exist = self._queue.call_all([("EXISTS", self._queue.keys.item(i)) for i in ids])
            there = [item_id for item_id, exists in zip(ids, exist, strict=True) if exists]
            self._push(self._to, [item_id for item_id in ids if item_id not in set(there)])
            # It was kicked here since: the copy is not needed.
            moving = {i for batch in self._marked(self._queue, self._leaving) for i in batch}
            seen = ListRange(Where.UNLISTED, 0, 0, [i for i in there if i not in moving])
            copies = read_snapshots(self._to, seen, Skipped(), b"", is_trusted=False)
            for batch in copies:
                self._remove(self._to, {item.item_id: fingerprint(item.data) for item in batch})

    def _marked(self, queue: Queue, reason: bytes) -> Iterator[list[bytes]]:
        """The buried items that have this reason."""
        found: list[bytes] = []
        for page in walk_scheduled(queue, "buried"):
            ids = [item_id for item_id, _ in page]
            guards = queue.call("MGET", *map(queue.keys.lease, ids))
            pairs = zip(ids, guards, strict=True)
            found += [item_id for item_id, guard in pairs if guard == BURIED_GUARD + reason]
        yield from in_batches(found, items_max=REMOVE_ITEMS)
