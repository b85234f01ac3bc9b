"""What is in transit between two queues, and whether its destination takes and keeps it."""

from collections import defaultdict
from collections.abc import Collection

from rwq_cli.core.errors import DataLost, PermissionDenied, text_of
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import ScheduledCursor
from rwq_cli.core.inspect.server_status import denied_groups
from rwq_cli.core.items.operation import Operation
from rwq_cli.core.keys import BURIED_GUARD, MOVING
from rwq_cli.core.model import OutcomeBatch, Status
from rwq_cli.core.state.located import Located

MOVING_GUARD = BURIED_GUARD + MOVING
_SCRIPTS = ("ops/restore", "ops/push_scheduled", "ops/remove_buried")
# How long the sign of a cut move stays.
_SIGN_S = 24 * 3600


class Destination:
    """The queue that a mover moves to.

    A key in it is the sign that it still has what arrived in a turn: it is written before, and its
    absence says that the server was flushed, restarted without data, or failed over.
    """

    def __init__(self, queue: Queue, mover: bytes) -> None:
        self._queue, self._sign = queue, queue.keys.moved(mover)
        self._is_permitted = self._is_signed = False

    def check(self, *, dry_run: bool = False) -> None:
        """Raise if the queue takes no writes, so that nothing is buried for it; or if it has lost
        what came in this turn."""
        if not self._is_permitted:
            denied = denied_groups(self._queue) or {}
            if reason := next(filter(None, map(denied.get, _SCRIPTS)), None):
                server = self._queue.connection.address
                message = f"{server} denied permission: this user may not run {reason}"
                raise PermissionDenied(message, "ask for an ACL rule that allows it")
            self._is_permitted = True
        # With XX it changes nothing, and is refused as any other.
        condition = ["XX"] if dry_run else []
        self._expect(self._queue.call("SET", self._sign, "1", "EX", _SIGN_S, "GET", *condition))
        self._is_signed = not dry_run

    def end(self) -> None:
        """End a turn: raise if what came in it is lost."""
        if self._is_signed:
            self._expect(self._queue.call("GETDEL", self._sign))
            self._is_signed = False

    def kick(self, ids: Collection[bytes], reason: bytes) -> None:
        """Give copies, whose originals are removed, to the workers there."""
        if any(batch.count(Status.MISSING) for batch in push(self._queue, ids, reason)):
            raise data_lost(self._queue)

    def _expect(self, sign: bytes | None) -> None:
        if self._is_signed and sign is None:
            raise data_lost(self._queue)


def data_lost(queue: Queue, *, is_source: bool = False) -> DataLost:
    """The error for an end of a move that has lost what the move relies on."""
    server = queue.connection.address
    first = "at the destination, rwq release --force frees what was in transit; here, "
    return DataLost(
        f"{text_of(queue.name)} on {server} has lost data since this move began: it was flushed, "
        "restarted or failed over",
        f"{first * is_source}rwq undo moves back what has arrived, then rwq import of the undo "
        "file restores the rest",
    )


def push(queue: Queue, ids: Collection[bytes], reason: bytes) -> list[OutcomeBatch]:
    """Put items that are buried for this reason at the end of the main list, with their counts of
    returns."""
    args = {"which": "buried", "keeps_counts": True, "transit": reason}
    return list(Operation(queue, "push_scheduled", args).send([Located.unlisted(ids)]))


def in_transit(queue: Queue) -> defaultdict[bytes, list[bytes]]:
    """The items that moves have buried, in order, by their reasons."""
    ids_by_reason: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for ids in ScheduledCursor(queue, "buried"):
        guards = queue.call("MGET", *map(queue.keys.lease, ids))
        for item_id, guard in zip(ids, guards, strict=True):
            if guard and guard.startswith(MOVING_GUARD):
                ids_by_reason[guard.removeprefix(BURIED_GUARD)].append(item_id)
    return ids_by_reason
