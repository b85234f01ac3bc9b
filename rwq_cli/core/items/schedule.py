"""Moving items into and out of the sorted sets of delayed and buried items, and back to main.

`lua/ops/schedule.lua` buries and delays, `release.lua` returns, `push_scheduled.lua` kicks and
promotes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rwq_cli.core.batches import Flush
from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import walk_scheduled
from rwq_cli.core.items.bulk import by_script, run
from rwq_cli.core.items.lease_policy import LeasePolicy
from rwq_cli.core.model import OutcomeBatch, Outcomes, Status
from rwq_cli.core.state.expected import ANY, Expected

# The guard of a buried item holds the reason twice, once under each lease name.
REASON_BYTES_MAX = 1024
NO_REASON = b"by hand"


@dataclass(frozen=True)
class Burial:
    """Bury items until they are kicked.

    The reason replaces that of an item that is already buried; None stands for `NO_REASON`, which
    does not. One that is longer than `REASON_BYTES_MAX` is an `InvalidArgument`.
    """

    reason: bytes | None
    script: ClassVar = "schedule"
    doing: ClassVar = "burying"

    def __post_init__(self) -> None:
        if len(self.reason or b"") > REASON_BYTES_MAX:
            raise InvalidArgument(
                f"the reason has {len(self.reason or b'')} bytes; the maximum is "
                f"{REASON_BYTES_MAX}",
                "shorten it",
            )

    def args(self) -> Mapping[str, Any]:
        """The script arguments."""
        reason = NO_REASON if self.reason is None else self.reason
        return {"delay_ms": None, "reason": reason, "replaces_reason": self.reason is not None}


@dataclass(frozen=True)
class Delay:
    """Delay items, from now by the server's clock."""

    delay_ms: int
    script: ClassVar = "schedule"
    doing: ClassVar = "delaying"

    def args(self) -> Mapping[str, Any]:
        """The script arguments."""
        return {"delay_ms": self.delay_ms, "reason": None, "replaces_reason": False}


@dataclass(frozen=True)
class Release:
    """Return items to the end of the main list, or to its front in their order."""

    front: bool
    script: ClassVar = "release"
    doing: ClassVar = "releasing"

    def args(self) -> Mapping[str, Any]:
        """The script arguments."""
        return {"front": self.front}


How = Burial | Delay | Release


def schedule_args(
    policy: LeasePolicy, how: How, *, is_first_look: bool = False, counts_attempt: bool = False
) -> dict[str, Any]:
    """The arguments of `lua/ops/release.lua` and `schedule.lua`."""
    look = {"is_first_look": is_first_look, "counts_attempt": counts_attempt}
    return {**policy.args(), **look, **how.args()}


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
    return _reschedule(queue, ids, policy, Burial(reason), expected, grace_s, dry_run=dry_run)


def release(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    *,
    force: bool = False,
    own_only: bool = False,
    front: bool = False,
    delay_s: float = 0.0,
    expected: Expected = ANY,
    grace_s: float = GRACE_S,
    dry_run: bool = False,
) -> Outcomes:
    """Return items to the main list, now or after a delay; see `WorkQueue.release_many`.

    With `own_only`, which excludes `force`, only what this handle's holder has leased. Items that
    do not meet the conditions of `expected` any more are `CHANGED`.
    """
    if own_only and force:
        raise InvalidArgument.both("own_only", "force")
    policy = LeasePolicy(queue.holder, force, own_only)
    delay_ms = round(delay_s * 1000)
    if delay_ms > 0 and front:
        raise InvalidArgument.both("front", "delay")
    how = Delay(delay_ms) if delay_ms > 0 else Release(front)
    return _reschedule(queue, ids, policy, how, expected, grace_s, dry_run=dry_run)


def _reschedule(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    policy: LeasePolicy,
    how: How,
    expected: Expected,
    grace_s: float,
    *,
    dry_run: bool,
) -> Outcomes:
    args = schedule_args(policy, how)
    act = by_script(queue, how.script, args, expected, dry_run=dry_run)
    return Outcomes(
        run(
            queue,
            act,
            ids,
            how.doing,
            in_order=isinstance(how, Release) and how.front,
            grace_s=None if policy.force else grace_s,
            looked_twice=expected.looked_twice,
        )
    )


def kick(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    *,
    expected: Expected = ANY,
    dry_run: bool = False,
) -> Outcomes:
    """Push buried items onto the end of the main list; see `WorkQueue.kick_many`."""
    args = {"which": "buried", "keeps_counts": False}
    act = by_script(queue, "push_scheduled", args, expected, dry_run=dry_run)
    return Outcomes(run(queue, act, ids, "kicking"))


def promote(
    queue: Queue, *, only: Collection[bytes] | None = None, dry_run: bool = False
) -> Iterator[OutcomeBatch]:
    """Push due items, or only these, onto the end of the main list, the earliest due first.

    Yields `PROMOTED` for an item that is now waiting, and `PRUNED` for an entry that was removed,
    because its item is gone, in a list, leased or buried.
    """
    args = {"which": "delayed", "keeps_counts": True}
    act = by_script(queue, "push_scheduled", args, dry_run=dry_run)
    due = [item_id for item_id in due_ids(queue) if only is None or item_id in only]
    if not due:
        return
    for batch in run(queue, act, due, "promoting"):
        changed = batch.only(set(batch.ids_with(Status.PROMOTED, Status.PRUNED)))
        if len(changed):
            yield changed


def due_ids(queue: Queue) -> list[bytes]:
    """The IDs of all due items, the earliest first."""
    now_ms = queue.now_ms()
    due: dict[bytes, None] = {}
    for page in walk_scheduled(queue, "delayed"):
        due.update((item_id, None) for item_id, due_ms in page if due_ms <= now_ms)
        if page[-1][1] > now_ms:
            break
    return list(due)
