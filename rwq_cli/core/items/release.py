"""Releasing items: `lua/ops/release.lua`, or `schedule.lua` for those with a delay."""

from collections.abc import Iterable

from rwq_cli.core.batches import Flush
from rwq_cli.core.clock import GRACE_S
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.lease_policy import LeasePolicy
from rwq_cli.core.items.schedule import Delay, Release, reschedule
from rwq_cli.core.model import Outcomes
from rwq_cli.core.state.expected import ANY, Expected


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

    Args:
        queue: The queue.
        ids: The IDs; read in batches.
        force: End leases of other sessions, too.
        own_only: Release only items that this handle's holder has leased; excludes `force`.
        front: Make them the next to be leased.
        delay_s: The delay, seconds.
        expected: The conditions that the items must still meet; otherwise they are `CHANGED`.
        grace_s: How long an item must look abandoned or orphaned, seconds.
        dry_run: Change nothing, and report what would be done.
    """
    if own_only and force:
        raise InvalidArgument.both("own_only", "force")
    policy = LeasePolicy(queue.holder, force, own_only)
    delay_ms = round(delay_s * 1000)
    if delay_ms > 0 and front:
        raise InvalidArgument.both("front", "delay")
    how = Delay(delay_ms) if delay_ms > 0 else Release(front)
    return reschedule(queue, ids, policy, how, expected=expected, grace_s=grace_s, dry_run=dry_run)
