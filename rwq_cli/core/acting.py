"""What is done to items: by their IDs, as methods of `WorkQueue`; by who has leased them."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rwq_cli.core.batches import Flush
from rwq_cli.core.clock import GRACE_S, LEASE_S, RESULT_TTL_S, checked_s
from rwq_cli.core.handle import Lazy, Queue, checked_ids, to_bytes
from rwq_cli.core.model import Item, Outcome, Outcomes, State, Status

if TYPE_CHECKING:
    from rwq_cli.core.items import complete, move, purge, restore, schedule
    from rwq_cli.core.state import snapshots
else:
    complete, move, purge = map(Lazy, ("items.complete", "items.move", "items.purge"))
    restore, schedule = map(Lazy, ("items.restore", "items.schedule"))
    snapshots = Lazy("state.snapshots")


class ActingQueue(Queue):
    """The methods of `WorkQueue` that act on items whose IDs are known.

    Each returns what became of the items that it was given. Its counterpart whose name ends in
    `_many` takes a stream of IDs, and does its work while the outcomes are read: 200,000 IDs are
    read before the first is acted on, or up to a `FLUSH` among them, which a live source gives when
    it has no more for now. `ServerError.acknowledged` is the number of IDs that were processed
    before an error. Any ID may be `MISSING` or `WRONG_TYPE`.

    Arguments that several have: `owner` acts only on items whose lease this holder still has, None
    on any. `force` ends leases of other sessions, too; without it, an item that looks abandoned or
    orphaned must do so for `grace_s` seconds: it may be between two commands of its worker or
    producer. A time that is negative, no number or longer than a hundred years is an
    `InvalidArgument`.
    """

    def complete(
        self,
        *ids: bytes | str,
        owner: bytes | None = None,
        result: bytes | None = None,
        result_ttl_s: float = RESULT_TTL_S,
    ) -> list[Outcome]:
        """Complete items wherever they are; exactly one call succeeds in completing an item.

        `result` is kept for each, for `result_ttl_s` seconds; it replaces that of an earlier item
        with this ID. For each ID `COMPLETED`, `NOT_OWNER` or `MOVING` (see `kick`).
        """
        return list(self.complete_many(ids, owner=owner, result=result, result_ttl_s=result_ttl_s))

    def complete_many(
        self,
        ids: Iterable[bytes | str | Flush],
        *,
        owner: bytes | None = None,
        result: bytes | None = None,
        result_ttl_s: float = RESULT_TTL_S,
    ) -> Outcomes:
        """Complete a stream of items; see `complete`."""
        options = None if result is None else complete.ResultOptions(result, ttl_s=result_ttl_s)
        return complete.complete(self, checked_ids(ids), owner=owner, result_options=options)

    def touch(
        self, *ids: bytes | str, for_s: float = LEASE_S, owner: bytes | None = None
    ) -> list[Outcome]:
        """Let live leases end `for_s` seconds from now.

        For each ID `TOUCHED`, `NOT_LEASED` or `NOT_OWNER`. Less than 1 ms is an `InvalidArgument`.
        """
        return list(self.touch_many(ids, for_s=for_s, owner=owner))

    def touch_many(
        self,
        ids: Iterable[bytes | str | Flush],
        *,
        for_s: float = LEASE_S,
        owner: bytes | None = None,
    ) -> Outcomes:
        """Extend the leases of a stream of items; see `touch`."""
        return schedule.touch(self, checked_ids(ids), lease_s=for_s, owner=owner)

    def release(
        self,
        *ids: bytes | str,
        force: bool = False,
        front: bool = False,
        delay_s: float = 0.0,
        grace_s: float = GRACE_S,
    ) -> list[Outcome]:
        """Return items to the main list, after `delay_s` seconds if it is not 0.

        At the `front`, which excludes a delay, they are the next to be leased, in this order; all
        IDs are read first. For each ID `RELEASED` or `DELAYED`, `ALREADY_WAITING`, `NOT_OWNER`,
        `CHANGED`, or without `force` `MOVING` (see `kick`).
        """
        return list(
            self.release_many(ids, force=force, front=front, delay_s=delay_s, grace_s=grace_s)
        )

    def release_many(
        self,
        ids: Iterable[bytes | str | Flush],
        *,
        force: bool = False,
        front: bool = False,
        delay_s: float = 0.0,
        grace_s: float = GRACE_S,
    ) -> Outcomes:
        """Return a stream of items to the queue; see `release`."""
        grace_s = checked_s("a grace period", grace_s)
        return schedule.release(
            self, checked_ids(ids), force=force, front=front, delay_s=delay_s, grace_s=grace_s
        )

    def bury(
        self,
        *ids: bytes | str,
        reason: bytes | None = None,
        force: bool = False,
        grace_s: float = GRACE_S,
    ) -> list[Outcome]:
        """Bury items, wherever they are, until they are kicked.

        The `reason`, at most 1,024 bytes, replaces that of an item that is already buried; None is
        "by hand", which does not. For each ID `BURIED`, `ALREADY_BURIED`, `REASON_REPLACED`,
        `NOT_OWNER`, `CHANGED`, or without `force` `MOVING` (see `kick`).
        """
        return list(self.bury_many(ids, reason=reason, force=force, grace_s=grace_s))

    def bury_many(
        self,
        ids: Iterable[bytes | str | Flush],
        *,
        reason: bytes | None = None,
        force: bool = False,
        grace_s: float = GRACE_S,
    ) -> Outcomes:
        """Bury a stream of items; see `bury`."""
        grace_s = checked_s("a grace period", grace_s)
        return schedule.bury(self, checked_ids(ids), reason=reason, force=force, grace_s=grace_s)

    def kick(self, *ids: bytes | str) -> list[Outcome]:
        """Push buried items onto the end of the main list, and reset their counts of returns.

        For each ID `KICKED`, `NOT_BURIED`, `NOT_OWNER` if a session holds a lease, or `MOVING` if a
        move from another server or slot has not finished with it: its original may still be there.
        """
        return list(self.kick_many(ids))

    def kick_many(self, ids: Iterable[bytes | str | Flush]) -> Outcomes:
        """Return a stream of buried items to the queue; see `kick`."""
        return schedule.kick(self, checked_ids(ids))

    def remove(self, *ids: bytes | str) -> list[Outcome]:
        """Remove items with every trace of them, whoever has leased them: `REMOVED` or `MOVING`."""
        return list(self.remove_many(ids))

    def remove_many(self, ids: Iterable[bytes | str | Flush]) -> Outcomes:
        """Remove a stream of items; see `remove`."""
        return complete.remove(self, checked_ids(ids), None)

    def move(
        self,
        *ids: bytes | str,
        to: bytes | str | Queue,
        force: bool = False,
        grace_s: float = GRACE_S,
    ) -> list[Outcome]:
        """Move items to the end of the queue with this name, or this handle.

        That may be on another server: an interrupted move continues when it is called again, and
        what it had begun to move is `FINISHED`, before all others. For each ID `MOVED`, `CHANGED`,
        `NOT_OWNER` if it has a lease, with `force` `MOVING` (see `kick`), or `CONFLICT` if the
        other queue has this ID.
        """
        return list(self.move_many(ids, to, force=force, grace_s=grace_s))

    def move_many(
        self,
        ids: Iterable[bytes | str | Flush],
        to: bytes | str | Queue,
        *,
        force: bool = False,
        grace_s: float = GRACE_S,
    ) -> Outcomes:
        """Move a stream of items to another queue; see `move`."""
        grace_s = checked_s("a grace period", grace_s)
        return move.move(self, checked_ids(ids), to, None, force=force, grace_s=grace_s)

    def edit_many(self, edits: Iterable[tuple[bytes | str, bytes, bytes]]) -> Outcomes:
        """Replace the data of items that is still what was read; place, lease and state stay.

        `edits` gives for each item its ID, the data that was read, and the new data. For each ID
        `SET`, `UNCHANGED` if both are equal, `CHANGED` if the data is no longer what was read, or
        `MOVING` (see `kick`).
        """
        read = (
            (snapshots.ItemSnapshot(to_bytes(item_id), before, State.WAITING, None), after)
            for item_id, before, after in edits
        )
        return restore.edit_items(self, read)

    def purge(self, *, grace_s: float = GRACE_S) -> int:
        """Remove all items that are in the queue now, and every key that belongs to no item.

        Items that a live producer adds meanwhile stay healthy. Items in no list are looked at
        twice, `grace_s` seconds apart: they may be between two commands of their producer. Returns
        how many items were removed.
        """
        grace_s = checked_s("a grace period", grace_s)
        batches = purge.purge(self, None, grace_s=grace_s).batches
        return sum(batch.count(Status.REMOVED) for batch in batches)


class LeasedItem(Item):
    """An item that `WorkQueue.lease` leased.

    Each method acts only if the lease that this item was taken with still stands, and checks that
    in the step that acts. Its outcome is `NOT_OWNER` if it does not, `MISSING` if the item was
    completed or removed, and `WRONG_TYPE` if one of its keys has the wrong type. The fields stay as
    they were when the item was leased; `is_ended` once a method has completed, released or buried
    it.
    """

    _queue: ActingQueue
    is_ended: bool

    @classmethod
    def of(cls, item: Item, queue: ActingQueue) -> "LeasedItem":
        leased = cls._make(item)
        leased._queue, leased.is_ended = queue, False
        return leased

    def complete(
        self, result: bytes | None = None, *, result_ttl_s: float = RESULT_TTL_S
    ) -> Outcome:
        """Complete the item (`COMPLETED`), and keep a result for `result_ttl_s` seconds."""
        queue, ids = self._queue, [self.item_id]
        return self._ended(
            queue.complete_many(ids, owner=queue.holder, result=result, result_ttl_s=result_ttl_s)
        )

    def touch(self, *, for_s: float = LEASE_S) -> Outcome:
        """Let the lease end `for_s` seconds from now (`TOUCHED`; `NOT_LEASED` if it has ended)."""
        return self._queue.touch(self.item_id, for_s=for_s, owner=self._queue.holder)[0]

    def release(self, *, front: bool = False, delay_s: float = 0.0) -> Outcome:
        """Return the item to the end of the queue, or to its `front` (`RELEASED`).

        It is `DELAYED` if it is to wait for `delay_s` seconds first, which excludes the front.
        """
        queue, ids = self._queue, [self.item_id]
        return self._ended(
            schedule.release(queue, ids, own_only=True, front=front, delay_s=delay_s, grace_s=0.0)
        )

    def bury(self, reason: bytes | str) -> Outcome:
        """Bury the item until it is kicked (`BURIED`)."""
        why, ids = to_bytes(reason), [self.item_id]
        return self._ended(schedule.bury(self._queue, ids, reason=why, own_only=True, grace_s=0.0))

    def _ended(self, outcomes: Outcomes) -> Outcome:
        (outcome,) = outcomes
        ends = (Status.COMPLETED, Status.RELEASED, Status.DELAYED, Status.BURIED)
        self.is_ended = self.is_ended or outcome.status in ends
        return outcome
