"""What the holder of a lease may do with it besides completing: touch, and release."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rwq_cli.core.batches import Flush, in_batches
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.bulk import Operation, act_unless_passing
from rwq_cli.core.model import OutcomeBatch, Outcomes
from rwq_cli.core.state.expected import ANY, Expected

# Two keys an item go: while the server shrinks its table of keys, each costs up to fifteen
# microseconds instead of two.
_RELEASE_ITEMS = 250


class LeasePolicy(NamedTuple):
    """Whose leases may be ended when an item is taken from where it is.

    Attributes:
        own_holder: Those of this holder.
        force: Those of all others, too.
    """

    own_holder: bytes
    force: bool

    def args(self) -> tuple[object, ...]:
        """The arguments that scripts take for it."""
        return self.own_holder, "1" if self.force else "0"


def release(
    queue: Queue,
    ids: Iterable[bytes | Flush],
    *,
    force: bool = False,
    front: bool = False,
    delay_s: float = 0.0,
    expected: Expected = ANY,
    grace_s: float = 1.0,
    dry_run: bool = False,
) -> Outcomes:
    """Put items back into the main list, now or after a delay.

    Args:
        queue: The queue.
        ids: The IDs; read in batches.
        force: End leases of other sessions, too. A guard of a delayed or buried item needs none.
        front: Make them the next to be leased, in this order, instead of the last.
        delay_s: Delay them for this long, seconds; 0 for not at all.
        expected: What the items were chosen for; one that is not that any more is `CHANGED`.
        grace_s: How long, seconds, an item must look abandoned or orphaned to be released without
            `force`: it may be between two commands of its worker or producer.
        dry_run: Change nothing, and report what would be done.

    Raises:
        InvalidArgument: Both `front` and a delay were given.
        ServerError: `acknowledged` says how many IDs were done.

    Returns:
        For each ID `RELEASED` or `DELAYED`, `ALREADY_WAITING`, `NOT_OWNER`, `MISSING` or `CHANGED`.
    """
    policy = LeasePolicy(queue.holder, force)
    delay_ms = round(delay_s * 1000)
    if delay_ms > 0:
        from rwq_cli.core.items.schedule import Delay, schedule

        if front:
            raise InvalidArgument("front and delay exclude each other", "give one of them")
        how = Delay(delay_ms)
        return schedule(
            queue, ids, policy, how, expected=expected, grace_s=grace_s, dry_run=dry_run
        )

    def operation(is_first_look: bool) -> Operation:
        args = (*policy.args(), int(is_first_look), int(front))
        return Operation(
            "release", args, "releasing", True, items_max=_RELEASE_ITEMS, expected=expected
        )

    batches = act_unless_passing(
        queue,
        operation,
        ids,
        # What was chosen by its state was looked at twice.
        looks_twice=not (force or expected.states),
        grace_s=grace_s,
        in_order=front,
        dry_run=dry_run,
    )
    return Outcomes(batches)


def touch(
    queue: Queue, ids: Iterable[bytes | Flush], *, lease_s: float = 300.0, dry_run: bool = False
) -> Outcomes:
    """Give live leases a new expiry.

    Args:
        queue: The queue.
        ids: The IDs; read in batches.
        lease_s: The new time left, seconds.
        dry_run: Change nothing, and report what would be done.

    Returns:
        For each distinct ID of a batch `TOUCHED`, `NOT_LEASED` or `MISSING`.
    """
    lease_ms = max(1, round(lease_s * 1000))

    def batches() -> Iterator[OutcomeBatch]:
        queue.progress.begin("touching")
        for batch in in_batches(ids):
            distinct = list(dict.fromkeys(batch))
            reply = queue.run("touch", lease_ms, *distinct, dry_run=dry_run)
            queue.progress.advance(len(batch))
            yield OutcomeBatch.from_reply(distinct, reply)

    return Outcomes(batches())
