"""Moving items into and out of the sorted sets of delayed and buried items, and back to main.

`lua/ops/schedule.lua` buries and delays, `release.lua` returns, `push_scheduled.lua` kicks and
promotes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from rwq_cli.core.batches import Flush
from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import walk_scheduled
from rwq_cli.core.items.bulk import by_script, run
from rwq_cli.core.model import OutcomeBatch, Outcomes, Status
from rwq_cli.core.state.expected import ANY, Expected

# The guard of a buried item holds the reason twice, once under each lease name.
REASON_BYTES_MAX = 1024
NO_REASON = b"by hand"


class How(NamedTuple):
    """A way to put items elsewhere: a script, a word for progress, and its own arguments."""

    script: str
    doing: str
    args: Mapping[str, Any]


def burial(reason: bytes | None) -> How:
    """Bury items until they are kicked.

    The reason replaces that of an item that is already buried; None stands for `NO_REASON`, which
    does not.
    """
    if (size := len(reason or b"")) > REASON_BYTES_MAX:
        message = f"the reason has {size} bytes; the maximum is {REASON_BYTES_MAX}"
        raise InvalidArgument(message, "shorten it")
    given = NO_REASON if reason is None else reason
    args = {"delay_ms": None, "reason": given, "replaces_reason": reason is not None}
    return How("schedule", "burying", args)


def delay(delay_ms: int) -> How:
    """Delay items, from now by the server's clock."""
    args = {"delay_ms": delay_ms, "reason": None, "replaces_reason": False}
    return How("schedule", "delaying", args)


def returning(*, front: bool) -> How:
    """Return items to the end of the main list, or to its front in their order."""
    return How("release", "releasing", {"front": front})


def schedule_args(
    how: How,
    holder: bytes,
    *,
    force: bool = False,
    own_only: bool = False,
    counts_attempt: bool = False,
) -> dict[str, Any]:
    """The arguments of a script of `How`.

    It ends leases of this holder, but for an item that another has leased under the other lease
    name; of all with `force`. With `own_only` it skips what this holder has not leased alone.
    `counts_attempt` counts a return of each item, because an attempt of it failed.
    """
    return {
        **how.args,
        "own_holder": holder,
        "force": force,
        "own_only": own_only,
        "is_first_look": False,
        "counts_attempt": counts_attempt,
    }


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
    args = schedule_args(burial(reason), queue.holder, force=force, own_only=own_only)
    return _put(queue, ids, burial(reason), args, expected, grace_s, dry_run=dry_run)


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
    delay_ms = round(delay_s * 1000)
    if delay_ms > 0 and front:
        raise InvalidArgument.both("front", "delay")
    how = delay(delay_ms) if delay_ms > 0 else returning(front=front)
    args = schedule_args(how, queue.holder, force=force, own_only=own_only)
    return _put(queue, ids, how, args, expected, grace_s, dry_run=dry_run)


def _put(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    how: How,
    args: Mapping[str, Any],
    expected: Expected,
    grace_s: float,
    *,
    dry_run: bool,
) -> Outcomes:
    act = by_script(queue, how.script, args, expected, dry_run=dry_run)
    in_order, grace = bool(args.get("front")), None if args["force"] else grace_s
    twice = expected.looked_twice
    return Outcomes(
        run(queue, act, ids, how.doing, in_order=in_order, grace_s=grace, looked_twice=twice)
    )


def kick(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    *,
    expected: Expected = ANY,
    dry_run: bool = False,
) -> Outcomes:
    """Push buried items onto the end of the main list; see `WorkQueue.kick_many`."""
    args = {"which": "buried", "keeps_counts": False, "finishes_move": False}
    act = by_script(queue, "push_scheduled", args, expected, dry_run=dry_run)
    return Outcomes(run(queue, act, ids, "kicking"))


def promote(
    queue: Queue, *, only: Collection[bytes] | None = None, dry_run: bool = False
) -> Iterator[OutcomeBatch]:
    """Push due items, or only these, onto the end of the main list, the earliest due first.

    Yields `PROMOTED` for an item that is now waiting, and `PRUNED` for an entry that was removed,
    because its item is gone, in a list, leased or buried.
    """
    args = {"which": "delayed", "keeps_counts": True, "finishes_move": False}
    act = by_script(queue, "push_scheduled", args, dry_run=dry_run)
    due = [item_id for item_id in due_ids(queue) if only is None or item_id in only]
    if not due:
        return
    for batch in run(queue, act, due, "promoting"):
        if len(changed := batch.without(Status.SKIPPED)):
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
