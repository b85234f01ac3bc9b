"""Putting items away and bringing them back: bury, delay, kick."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rwq_cli.core.batches import Flush, ids_per_call, in_batches
from rwq_cli.core.errors import InvalidArgument, ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.bulk import LeasePolicy, act_on_ids, outcome_batch
from rwq_cli.core.items.processing import FEW_IDS
from rwq_cli.core.model import OutcomeBatch
from rwq_cli.core.server.connection import REFUSED

# What a guard says of a buried item is kept twice, once for each lease name.
REASON_BYTES_MAX = 1024
NO_REASON = b"by hand"
# Two keys an item come or go: while the server makes its table of keys larger or smaller, each
# costs it up to fifteen microseconds instead of two.
_PARK_ITEMS = 250
# Of a long stream so many are looked up at once.
_BLOCK_IDS = 100_000


@dataclass(frozen=True, slots=True)
class Burial:
    """To set items aside until somebody kicks them.

    Attributes:
        reason: Why, to be shown with them; it replaces that of what is buried already. None for
            `NO_REASON`, which does not.
    """

    reason: bytes | None

    def args(self) -> tuple[object, ...]:
        """How the scripts are told."""
        check_reason(self.reason)
        return ("bury", NO_REASON) if self.reason is None else ("rebury", self.reason)


@dataclass(frozen=True, slots=True)
class Delay:
    """To put items off: they come back by themselves when they are due.

    Attributes:
        delay_ms: For how long, milliseconds from now by the server's clock.
    """

    delay_ms: int

    def args(self) -> tuple[object, ...]:
        """How the scripts are told."""
        return self.delay_ms, b""


def check_reason(reason: bytes | None) -> None:
    """Refuse a reason that is no reason but a report.

    Raises:
        InvalidArgument: It is longer than `REASON_BYTES_MAX`.
    """
    if reason is not None and len(reason) > REASON_BYTES_MAX:
        raise InvalidArgument(
            f"the reason has {len(reason)} bytes, and {REASON_BYTES_MAX} at most are kept",
            "say it shorter, and keep the long story elsewhere",
        )


def park_items(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    lease_policy: LeasePolicy,
    how: Burial | Delay,
) -> Iterator[OutcomeBatch]:
    """Put items away, wherever they are.

    Args:
        queue: The queue.
        ids: The IDs; read in batches.
        lease_policy: Whose leases may be ended.
        how: Whether to bury them or to delay them.

    Raises:
        InvalidArgument: The reason is longer than `REASON_BYTES_MAX`.
        ServerError: The server refused, or was lost; `acknowledged` says how many IDs were done.

    Returns:
        For each ID `BURIED`, `ALREADY_BURIED` or `DELAYED`, and `NOT_OWNER` or `MISSING`.
    """
    return act_on_ids(
        queue,
        "park",
        (*lease_policy.args(), *how.args()),
        ids,
        waiting_script="park_waiting",
        parked_first=True,
        items_max=_PARK_ITEMS,
    )


def kick_items(queue: Queue, ids: Iterable[bytes | Flush]) -> Iterator[OutcomeBatch]:
    """Put buried items back at the end of the queue, and forget how often they had come back.

    What is behind a full guard goes onto main in the order given. Another, which a cleaner of
    another language may have returned, comes after those, once the lists were read for it. So does
    one that waits in spite of its guard, because a producer of 0.1 added it anew; it is looked for
    where few IDs are named, as that costs the length of the lists for each.

    Args:
        queue: The queue.
        ids: The IDs; read in batches.

    Raises:
        ServerError: The server refused, or was lost; `acknowledged` says how many IDs were done.

    Yields:
        For each ID `KICKED`, `NOT_BURIED`, `MISSING`, or `NOT_OWNER` where a session has a lease.
    """
    acknowledged = 0
    queue.progress.begin("kicking")
    try:
        for block in in_batches(ids, items_max=_BLOCK_IDS):
            for batch in _kick(queue, list(dict.fromkeys(block))):
                acknowledged += len(batch)
                queue.progress.advance(len(batch))
                yield batch
    except ServerError as error:
        error.acknowledged = acknowledged
        raise


def _kick(queue: Queue, ids: list[bytes]) -> Iterator[OutcomeBatch]:
    looks, per_call = len(ids) <= FEW_IDS, _PARK_ITEMS
    if looks:
        lengths = queue.call_all(
            [("LLEN", key) for key in (queue.keys.main, queue.keys.processing)]
        )
        per_call = min(per_call, ids_per_call(sum(lengths)))
    while ids:
        batches = list(in_batches(ids, items_max=per_call))
        calls = (("1" if looks else "0", *batch) for batch in batches)
        unguarded: list[bytes] = []
        replies = queue.run_each("kick", calls)
        for batch, reply in zip(batches, replies, strict=True):
            if reply is REFUSED:
                continue
            told = outcome_batch(batch, reply)
            if len(told) < len(batch):
                known = frozenset(told.ids)
                unguarded += [item_id for item_id in batch if item_id not in known]
            if len(told):
                yield told
        if not unguarded:
            return
        from rwq_cli.core.items.reconcile import reconcile

        settled: set[bytes] = set()
        for pushed, stale in reconcile(queue, "buried", unguarded):
            settled.update(pushed, stale)
            if pushed or stale:
                yield OutcomeBatch([*pushed, *stale], "k" * len(pushed) + "u" * len(stale))
        # What changed hands meanwhile is looked at anew.
        ids = [item_id for item_id in unguarded if item_id not in settled]
