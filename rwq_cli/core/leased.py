"""An item that was leased, with what its holder does to it."""

from typing import TYPE_CHECKING

from rwq_cli.core.clock import LEASE_S, RESULT_TTL_S
from rwq_cli.core.errors import LeaseLost
from rwq_cli.core.model import Item, Outcome, Status

if TYPE_CHECKING:
    from rwq_cli.core.handle import Queue


class LeasedItem(Item):
    """An item that `WorkQueue.lease` leased.

    Each method acts only if the lease that this item was taken with still stands, and checks that
    in the step that acts. Its outcome is `NOT_OWNER` if it does not, and `MISSING` if the item was
    completed or removed. The fields stay as they were when the item was leased.

    Attributes:
        is_ended: Whether one of its methods completed, released or buried it.
    """

    _queue: "Queue"
    is_ended: bool

    @classmethod
    def of(cls, item: Item, queue: "Queue") -> "LeasedItem":
        """The item, leased through this handle."""
        leased = cls._make(item)
        leased._queue = queue
        leased.is_ended = False
        return leased

    def complete(
        self, result: bytes | None = None, *, result_ttl_s: float = RESULT_TTL_S
    ) -> Outcome:
        """Complete the item, and keep a result.

        Args:
            result: The result to keep; None for none.
            result_ttl_s: How long it is kept, seconds.

        Returns:
            `COMPLETED`, `NOT_OWNER`, `MISSING` or `WRONG_TYPE`.
        """
        from rwq_cli.core.items.complete import complete
        from rwq_cli.core.items.results import ResultOptions

        options = None if result is None else ResultOptions(result, ttl_s=result_ttl_s)
        ended = complete(self._queue, [self.item_id], owner=self._holder, result_options=options)
        return self._ended(next(ended))

    def touch(self, *, for_s: float = LEASE_S) -> Outcome:
        """Let the lease end this many seconds from now.

        Returns:
            `TOUCHED`, `NOT_OWNER`, `NOT_LEASED`, `MISSING` or `WRONG_TYPE`.
        """
        from rwq_cli.core.items.touch import touch

        return next(touch(self._queue, [self.item_id], lease_s=for_s, owner=self._holder))

    def release(self, *, front: bool = False, delay_s: float = 0.0) -> Outcome:
        """Return the item to the end of the queue.

        Args:
            front: Make it the next to be leased instead; excludes a delay.
            delay_s: The delay, seconds; 0 for none.

        Returns:
            `RELEASED` or `DELAYED`, `NOT_OWNER`, `MISSING` or `WRONG_TYPE`.
        """
        from rwq_cli.core.items.schedule import release

        released = release(
            self._queue, [self.item_id], own_only=True, front=front, delay_s=delay_s, grace_s=0.0
        )
        return self._ended(next(released))

    def bury(self, reason: bytes | str) -> Outcome:
        """Bury the item until it is kicked.

        Returns:
            `BURIED`, `NOT_OWNER`, `MISSING` or `WRONG_TYPE`.
        """
        from rwq_cli.core.handle import to_bytes
        from rwq_cli.core.items.schedule import bury

        buried = bury(
            self._queue, [self.item_id], reason=to_bytes(reason), own_only=True, grace_s=0.0
        )
        return self._ended(next(buried))

    def complete_or_raise(self) -> None:
        """Complete the item, unless it has ended.

        Raises:
            LeaseLost: The lease does not stand any more.
        """
        if not self.is_ended and (outcome := self.complete()).status is not Status.COMPLETED:
            raise LeaseLost.of(outcome.item_id)

    @property
    def _holder(self) -> bytes:
        return self._queue.holder if self.lease is None else self.lease.holder

    def _ended(self, outcome: Outcome) -> Outcome:
        self.is_ended = self.is_ended or outcome.status in _ENDS
        return outcome


_ENDS = (Status.COMPLETED, Status.RELEASED, Status.DELAYED, Status.BURIED)
