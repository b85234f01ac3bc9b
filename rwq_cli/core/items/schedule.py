"""Touching leases (`lua/ops/touch.lua`); putting items back, delaying and burying them
(`put.lua`); kicking and promoting them (`push_scheduled.lua`)."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Any

from rwq_cli.core.batches import BLOCK_IDS, Flush, acknowledged, in_batches
from rwq_cli.core.clock import GRACE_S, LEASE_S, checked_s, lease_time_ms
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import PAGE_SIZE, ScheduledCursor
from rwq_cli.core.items.operation import Operation
from rwq_cli.core.model import OutcomeBatch, Outcomes, Status
from rwq_cli.core.server.commands import Command
from rwq_cli.core.state.expected import ANY, Expected
from rwq_cli.core.state.located import Located

# The guard of a buried item holds the reason twice, once under each lease name.
REASON_BYTES_MAX = 1024
NO_REASON = b"by hand"


def touch(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    *,
    lease_s: float = LEASE_S,
    owner: bytes | None = None,
    dry_run: bool = False,
) -> Outcomes:
    """Give live leases a new expiry; see `WorkQueue.touch_many`."""
    lease_ms, has_owners = lease_time_ms(lease_s), owner is not None

    def calls() -> Iterator[tuple[list[bytes], Command] | None]:
        queue.progress.begin("touching")
        for block in in_batches(ids, items_max=BLOCK_IDS):
            for batch in in_batches(block, items_max=queue.budget("touch").items):
                once = list(dict.fromkeys(batch))
                rest = once if owner is None else [word for i in once for word in (i, owner)]
                yield (
                    once,
                    queue.script(
                        "touch", *rest, dry_run=dry_run, lease_ms=lease_ms, has_owners=has_owners
                    ),
                )
            # The source may pause here.
            yield None

    return Outcomes(acknowledged(queue.progress, queue.act_each(calls())))


def put_args(
    to: str,
    holder: bytes,
    delay_ms: int | None = None,
    reason: bytes | None = None,
    counts: Iterable[int] = (),
    **flags: bool,
) -> dict[str, Any]:
    """The arguments of `put.lua`, for which see there, also for the flags, which are off. A reason
    of None is `NO_REASON`, which does not replace that of an item that is already buried."""
    if (size := len(reason or b"")) > REASON_BYTES_MAX:
        message = f"the reason has {size} bytes; the maximum is {REASON_BYTES_MAX}"
        raise InvalidArgument(message, "shorten it")
    return {
        **dict.fromkeys(("force", "own_only"), False),
        **flags,
        "to": to,
        "counts": ",".join(map(str, counts)),
        "delay_ms": delay_ms,
        "reason": NO_REASON if reason is None else reason,
        "replaces_reason": reason is not None,
        "own_holder": holder,
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
    args = put_args("buried", queue.holder, reason=reason, force=force, own_only=own_only)
    return _put(queue, ids, args, expected, grace_s, dry_run=dry_run)


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
    """Return items to the main list, now or after a delay; see `WorkQueue.release_many`."""
    if own_only and force:
        raise InvalidArgument.both("own_only", "force")
    delay_ms = round(checked_s("a delay", max(delay_s, 0.0)) * 1000)
    if delay_ms > 0 and front:
        raise InvalidArgument.both("front", "delay")
    to = "delayed" if delay_ms > 0 else "front" if front else "main"
    args = put_args(to, queue.holder, delay_ms, force=force, own_only=own_only)
    return _put(queue, ids, args, expected, grace_s, dry_run=dry_run)


def _put(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    args: dict[str, Any],
    expected: Expected,
    grace_s: float,
    *,
    dry_run: bool,
) -> Outcomes:
    is_front = args["to"] == "front"
    put = (_PutInFront if is_front else Operation)(
        queue,
        "put",
        args,
        {"buried": "burying", "delayed": "delaying"}.get(args["to"], "releasing"),
        expected,
        grace_s=None if args["force"] else grace_s,
        at_once=is_front,
        dry_run=dry_run,
    )
    return Outcomes(put.run(ids))


class _PutInFront(Operation):
    """Each call puts its items in front of those of the call before it, so the last comes first."""

    def send(self, calls: Iterable[Located]) -> Iterator[OutcomeBatch]:
        parts = [part for call in calls for part in call.within(self.queue.budget("put"))]
        return super().send(parts[::-1] if self.dry_run else _after_each_other(parts[::-1]))


def _after_each_other(calls: Iterable[Located]) -> Iterator[Located]:
    """Yield the calls with their entries where they are when the calls before have removed theirs.

    Each entry removed nearer to the left end, from which windows are counted, moves those behind it
    by one place. What the calls push at the right end moves none.
    """
    removed: tuple[list[int], list[int]] = [], []
    for call in calls:
        main, processing = (
            [[at + len(gone) - bisect_right(gone, at) for at in positions] for positions in column]
            for gone, column in zip(removed, call.entries, strict=True)
        )
        yield call._replace(entries=(main, processing))
        for gone, column in zip(removed, call.entries, strict=True):
            gone += chain.from_iterable(column)
            gone.sort()


def kick(
    queue: Queue, ids: Iterable[bytes | Flush], *, expected: Expected = ANY, dry_run: bool = False
) -> Outcomes:
    """Push buried items onto the end of the main list; see `WorkQueue.kick_many`."""
    args = {"which": "buried", "keeps_counts": False, "transit": None}
    pushing = Operation(queue, "push_scheduled", args, "kicking", expected, dry_run=dry_run)
    return Outcomes(pushing.run(ids))


def promote(
    queue: Queue, *, only: Collection[bytes] | None = None, dry_run: bool = False
) -> Iterator[OutcomeBatch]:
    """Push due items, or only these, onto the end of the main list, the earliest due first.

    Yields `PROMOTED` for an item that is now waiting, and `PRUNED` for an entry that was removed,
    because its item is gone, in a list, leased or buried.
    """
    args = {"which": "delayed", "keeps_counts": True, "transit": None}
    pushing = Operation(queue, "push_scheduled", args, "promoting", dry_run=dry_run)
    now_ms = queue.now_ms()
    due: dict[bytes, None] = {}
    cursor = ScheduledCursor(queue, "delayed", page_size=PAGE_SIZE)
    for page in cursor:
        times = zip(page, cursor.scores, strict=True)
        due.update((item_id, None) for item_id, due_ms in times if due_ms <= now_ms)
        if cursor.scores[-1] > now_ms:
            break
    wanted = [item_id for item_id in due if only is None or item_id in only]
    for batch in pushing.run(wanted) if wanted else ():
        if len(changed := batch.without(Status.SKIPPED)):
            yield changed
