"""Promoting delayed items: what is due goes onto main, in the order of the due times."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rwq_cli.core.handle import Queue
from rwq_cli.core.server.connection import REFUSED

# Two keys an item go, and the server makes its table of keys smaller meanwhile.
_PROMOTE_ITEMS = 150


class Promoted(NamedTuple):
    """What one call promoted.

    Attributes:
        ids: The items that wait now, the earliest due first.
        dropped: IDs whose entry in the delayed zset meant nothing any more: no data, or an item
            that somebody works on.
    """

    ids: Sequence[bytes]
    dropped: Sequence[bytes]


def promote(queue: Queue, *, dry_run: bool = False) -> Iterator[Promoted]:
    """Promote all that is due by the server's clock.

    Items are pushed in the order of their due times, behind what waits already. A due item whose
    guard has ended may have been returned by a cleaner of another language; such items come last,
    after a look through the lists for them.

    Args:
        queue: The queue.
        dry_run: Change nothing, and say what would be done.

    Yields:
        What each call did, if it did anything.
    """
    unguarded: dict[bytes, None] = {}
    passing = _Passing()
    for skipped, reply in _replies(queue, passing, dry_run=dry_run):
        looked_at, count = reply[0], reply[1]
        ids, rest = reply[2 : 2 + count], reply[2 + count :]
        dropped, left = rest[1 : 1 + rest[0]], rest[1 + rest[0] :]
        unguarded.update(dict.fromkeys(left))
        # A call that was sent before this was known looks at some of them again.
        passing.kept = max(passing.kept, skipped + looked_at - len(ids) - len(dropped))
        if ids or dropped:
            yield Promoted(ids, dropped)
    if unguarded:
        from rwq_cli.core.items.reconcile import reconcile, would_settle

        ids = list(unguarded)
        for settled in would_settle(queue, ids) if dry_run else reconcile(queue, "delayed", ids):
            yield Promoted(settled.pushed, settled.stale)


@dataclass(slots=True)
class _Passing:
    """How many due entries stay where they are, and have to be passed over."""

    kept: int = 0


def _replies(queue: Queue, passing: _Passing, *, dry_run: bool) -> Iterator[tuple[int, list[Any]]]:
    """What the calls reply until nothing more is due, with how many entries each passed over.

    Only where the first finds much are the next sent ahead of the replies.
    """
    passed: deque[int] = deque()
    done = False

    def words() -> tuple[object, ...]:
        # Where nothing is taken away, the next page stands behind those that were asked for.
        passed.append(asked * _PROMOTE_ITEMS if dry_run else passing.kept)
        return (_PROMOTE_ITEMS, passed[-1], "0" if dry_run else "1")

    asked = 0
    reply = queue.run("promote", *words())
    yield passed.popleft(), reply
    done = reply[0] < _PROMOTE_ITEMS

    def calls() -> Iterator[Sequence[object]]:
        nonlocal asked
        while not done:
            asked += 1
            yield words()

    if done:
        return
    for reply in queue.run_each("promote", calls()):
        skipped = passed.popleft()
        if reply is not REFUSED:
            done = done or reply[0] < _PROMOTE_ITEMS
            yield skipped, reply
