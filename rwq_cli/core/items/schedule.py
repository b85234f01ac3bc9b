"""Moving items into and out of the sorted sets of delayed and buried items.

`lua/ops/schedule.lua` buries and delays, `release.lua` returns, `push_scheduled.lua` kicks and
promotes.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from rwq_cli.core.batches import BATCH_WRITES, Flush
from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import walk_scheduled
from rwq_cli.core.items.bulk import Operation, act_after_second_look, apply
from rwq_cli.core.items.lease_policy import LeasePolicy
from rwq_cli.core.model import OutcomeBatch, Outcomes, Status
from rwq_cli.core.state.expected import ANY, Expected

# The guard of a buried item holds the reason twice, once under each lease name.
REASON_BYTES_MAX = 1024
NO_REASON = b"by hand"
_SCHEDULE_ITEMS = BATCH_WRITES


class Burial:
    """Bury items until they are kicked.

    Args:
        reason: The reason that is shown with them; it replaces the reason of an item that is
            already buried. None for `NO_REASON`, which does not replace it.

    Raises:
        InvalidArgument: The reason is longer than `REASON_BYTES_MAX`.
    """

    script = "schedule"
    doing = "burying"

    def __init__(self, reason: bytes | None) -> None:
        if reason is not None and len(reason) > REASON_BYTES_MAX:
            raise InvalidArgument(
                f"the reason has {len(reason)} bytes; the maximum is {REASON_BYTES_MAX}",
                "shorten it",
            )
        self.reason = reason

    def args(self) -> dict[str, Any]:
        """The script arguments."""
        reason = NO_REASON if self.reason is None else self.reason
        return {
            "delay_ms": None,
            "reason": reason,
            "replaces_reason": self.reason is not None,
        }


class Delay:
    """Delay items until they are due.

    Args:
        delay_ms: The delay from now by the server's clock, milliseconds.
    """

    script = "schedule"
    doing = "delaying"

    def __init__(self, delay_ms: int) -> None:
        self.delay_ms = delay_ms

    def args(self) -> dict[str, Any]:
        """The script arguments."""
        return {"delay_ms": self.delay_ms, "reason": None, "replaces_reason": False}


class Release:
    """Return items to the main list.

    Args:
        front: Make them the next to be leased, in this order, instead of the last.
    """

    script = "release"
    doing = "releasing"

    def __init__(self, front: bool) -> None:
        self.front = front

    def args(self) -> dict[str, Any]:
        """The script arguments."""
        return {"front": self.front}


How = Burial | Delay | Release


def bury(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    *,
    reason: bytes | None = None,
    force: bool = False,
    own_only: bool = False,
    expected: Expected = ANY,
    grace_s: float = GRACE_S,
    dry_run: bool = False,
) -> Outcomes:
    """Bury items; see `WorkQueue.bury_many`, and `release` for the other arguments."""
    policy = LeasePolicy(queue.holder, force, own_only)
    how = Burial(reason)
    return reschedule(queue, ids, policy, how, expected=expected, grace_s=grace_s, dry_run=dry_run)


def schedule_args(
    policy: LeasePolicy, how: How, *, is_first_look: bool, counts_attempt: bool = False
) -> dict[str, Any]:
    """The arguments of `lua/ops/release.lua` and `schedule.lua`.

    Args:
        policy: Whose leases may be ended.
        how: What to do with the items.
        is_first_look: Skip abandoned and orphaned items, which may be in transit.
        counts_attempt: Count a return of each, because an attempt of it failed.
    """
    look = {"is_first_look": is_first_look, "counts_attempt": counts_attempt}
    return {**policy.args(), **look, **how.args()}


def reschedule(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    policy: LeasePolicy,
    how: How,
    *,
    expected: Expected,
    grace_s: float,
    dry_run: bool,
) -> Outcomes:
    """Return, delay or bury items; see `release` and `bury`."""

    in_order = isinstance(how, Release) and how.front

    def act(ids: Iterable[bytes | Flush], is_first_look: bool) -> Iterator[OutcomeBatch]:
        args = schedule_args(policy, how, is_first_look=is_first_look)
        operation = Operation(
            how.script, args, how.doing, items_max=_SCHEDULE_ITEMS, expected=expected
        )
        return apply(queue, operation, ids, in_order=in_order, dry_run=dry_run)

    if policy.force:
        return Outcomes(act(ids, False))
    twice = act_after_second_look(
        queue, act, ids, expected=expected, grace_s=grace_s, all_at_once=in_order
    )
    return Outcomes(twice)


def kick(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    *,
    expected: Expected = ANY,
    dry_run: bool = False,
) -> Outcomes:
    """Push buried items onto the end of the main list; see `WorkQueue.kick_many`."""
    return Outcomes(apply(queue, _push("buried", "kicking", expected), ids, dry_run=dry_run))


def promote(
    queue: Queue, *, only: Collection[bytes] | None = None, dry_run: bool = False
) -> Iterator[OutcomeBatch]:
    """Push due items onto the end of the main list, the earliest due first.

    Args:
        queue: The queue.
        only: The IDs to look at; None for all.
        dry_run: Change nothing, and report what would be done.

    Yields:
        `PROMOTED` for an item that is now waiting, and `PRUNED` for an entry that was removed,
        because its item is gone, in a list, leased or buried.
    """
    if dry_run:
        queue.connection.set_no_touch()
    due = [item_id for item_id in due_ids(queue) if only is None or item_id in only]
    if not due:
        return
    for batch in apply(queue, _push("delayed", "promoting"), due, dry_run=dry_run):
        changed = batch.only(set(batch.ids_with(Status.PROMOTED, Status.PRUNED)))
        if len(changed):
            yield changed


def _push(which: str, doing: str, expected: Expected = ANY) -> Operation:
    args = {"which": which, "keeps_counts": which == "delayed"}
    return Operation("push_scheduled", args, doing, items_max=_SCHEDULE_ITEMS, expected=expected)


def due_ids(queue: Queue) -> list[bytes]:
    """The IDs of all due items, the earliest first."""
    now_ms = queue.now_ms()
    due: dict[bytes, None] = {}
    for page in walk_scheduled(queue, "delayed"):
        due.update((item_id, None) for item_id, due_ms in page if due_ms <= now_ms)
        if page[-1][1] > now_ms:
            break
    return list(due)
