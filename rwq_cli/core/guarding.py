"""Guards that were lost, or half of them: a late worker's lease takes the place of one name's."""

from collections.abc import Iterable
from typing import NamedTuple

from rwq_cli.core.batches import BATCH_ITEMS, in_batches
from rwq_cli.core.connection import Connection
from rwq_cli.core.keys import BURIED_GUARD, DELAYED_GUARD, QueueKeys
from rwq_cli.core.scripts import queue_args, queue_keys
from rwq_cli.core.survey import listed_ids, zset_members

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


def find_unguarded(connection: Connection, keys: QueueKeys) -> dict[bytes, str]:
    """The delayed and buried items that no guard keeps from the cleaners of either generation.

    Args:
        connection: The server.
        keys: The queue.

    Raises:
        ServerError: The server refused, or was lost.

    Returns:
        Their IDs, with `delayed` or `buried`. What somebody holds a lease of is left out.
    """
    found: dict[bytes, str] = {}
    for which, page in zset_members(connection, keys):
        for batch in in_batches(page):
            suspects = []
            names = (name for i in batch for name in (keys.lease(i), keys.old_lease(i)))
            holders = connection.call("MGET", *names)
            for item_id, new, old in zip(batch, holders[::2], holders[1::2], strict=True):
                guards = [holder.startswith(_GUARD_OF[which]) for holder in (new, old) if holder]
                if all(guards) and len(guards) < 2:
                    suspects.append(item_id)
            # What has no data yet, and an old entry, may be about to be added.
            stored = connection.call_all([("EXISTS", keys.item(item_id)) for item_id in suspects])
            for item_id, exists in zip(suspects, stored, strict=True):
                if exists:
                    found[item_id] = which
    return found


def guard_anew(connection: Connection, keys: QueueKeys, ids: Iterable[bytes]) -> Guarded:
    """Guard delayed and buried items that have lost their guard, or half of it.

    Args:
        connection: The server.
        keys: The queue.
        ids: The IDs, which were in no list a grace period ago; others are left as they are.

    Raises:
        ServerError: The server refused, or was lost.
    """
    guarded: list[bytes] = []
    for batch in in_batches(ids, items_max=BATCH_ITEMS // 2):
        words = (*queue_args(keys), "0", LOST_REASON, *batch)
        guarded += connection.run("reschedule", queue_keys(keys), words)
    # From now on no cleaner pushes them, so that what is in no list stays so.
    listed = listed_ids(connection, keys, guarded, scheduled=False) if guarded else frozenset()
    return Guarded(
        [item_id for item_id in guarded if item_id not in listed],
        [item_id for item_id in guarded if item_id in listed],
    )
