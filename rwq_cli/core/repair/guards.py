"""Guards that were lost, or half of them: a late worker's lease takes the place of one name's."""

from collections.abc import Iterable
from typing import NamedTuple

from rwq_cli.core.batches import BATCH_ITEMS, in_batches
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.survey import listed_ids, zset_members
from rwq_cli.core.keys import BURIED_GUARD, DELAYED_GUARD

LOST_REASON = b"its reason was lost with its guard"
_GUARD_OF = {"delayed": DELAYED_GUARD, "buried": BURIED_GUARD}


class Guarded(NamedTuple):
    """What became of some items without a guard.

    Attributes:
        anew: Those that are guarded now, and in no list.
        listed: Those that a cleaner of another language had brought back before that.
    """

    anew: list[bytes]
    listed: list[bytes]


def find_unguarded(
    queue: Queue,
) -> dict[bytes, str]:
    """The delayed and buried items that no guard keeps from the cleaners of either generation.

    Args:
        queue: The queue.

    Returns:
        Their IDs, with `delayed` or `buried`. What somebody holds a lease of is left out.
    """
    found: dict[bytes, str] = {}
    for which, page in zset_members(
        queue,
    ):
        for batch in in_batches(page):
            suspects = []
            names = (name for i in batch for name in (queue.keys.lease(i), queue.keys.old_lease(i)))
            holders = queue.call("MGET", *names)
            for item_id, new, old in zip(batch, holders[::2], holders[1::2], strict=True):
                guards = [holder.startswith(_GUARD_OF[which]) for holder in (new, old) if holder]
                if all(guards) and len(guards) < 2:
                    suspects.append(item_id)
            # What has no data yet, and an old entry, may be about to be added.
            stored = queue.call_all([("EXISTS", queue.keys.item(item_id)) for item_id in suspects])
            for item_id, exists in zip(suspects, stored, strict=True):
                if exists:
                    found[item_id] = which
    return found


def restore_guards(queue: Queue, ids: Iterable[bytes]) -> Guarded:
    """Guard delayed and buried items that have lost their guard, or half of it.

    Args:
        queue: The queue.
        ids: The IDs, which were in no list a grace period ago; others are left as they are.
    """
    guarded: list[bytes] = []
    for batch in in_batches(ids, items_max=BATCH_ITEMS // 2):
        words = ("0", LOST_REASON, *batch)
        guarded += queue.run("reschedule", *words)
    # From now on no cleaner pushes them, so that what is in no list stays so.
    listed = listed_ids(queue, guarded, scheduled=False) if guarded else frozenset()
    return Guarded(
        [item_id for item_id in guarded if item_id not in listed],
        [item_id for item_id in guarded if item_id in listed],
    )
