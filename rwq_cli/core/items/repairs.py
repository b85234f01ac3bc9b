"""The repairs of cleans and of the doctor: `lua/ops/repair.lua` and `prune.lua`.

Each takes IDs that looked broken in the same way a grace period ago. Its script checks them again,
and skips IDs that are no longer broken.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from getpass import getuser
from itertools import chain, repeat
from os import getpid
from socket import gethostname
from typing import TypeVar
from uuid import uuid4

from rwq_cli.core.batches import BUDGET, in_batches
from rwq_cli.core.errors import ServerError, text_of
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.bulk import by_script, run, unlisted
from rwq_cli.core.model import TIME_MS_MAX, OutcomeBatch, State, Status
from rwq_cli.core.state.expected import Expected, FirstLook

_SCHEDULED = frozenset(state for state in State if state.is_scheduled)
# The script argument for a `bury_after` of None.
_NEVER = -1


def repair(
    queue: Queue,
    ids: Collection[bytes],
    states: Collection[State],
    look: FirstLook,
    bury_after: int | None = None,
    *,
    dry_run: bool = False,
) -> Iterator[OutcomeBatch]:
    """Repair IDs that are still in one of these states, as `lua/ops/repair.lua` says; without
    states, stale schedule entries. Yields what was done, without the skipped."""
    args = {"bury_after": _NEVER if bury_after is None else bury_after, "looked_ms": look.at_ms}
    expected = Expected(frozenset(states), tokens=look.digests)
    act = by_script(queue, "repair", args, expected, dry_run=dry_run)
    for batch in run(queue, act, ids, "repairing"):
        if len(done := batch.without(Status.SKIPPED)):
            yield done


def restore_guards(
    queue: Queue, ids: Iterable[bytes], *, dry_run: bool = False
) -> Iterator[OutcomeBatch]:
    """Put back the guards of delayed and buried items in no list that are missing under a name."""
    args = {"bury_after": _NEVER, "looked_ms": TIME_MS_MAX}
    act = by_script(queue, "repair", args, Expected(_SCHEDULED), dry_run=dry_run)
    for batch in act(unlisted(ids, since_ms=TIME_MS_MAX), False):
        yield OutcomeBatch.all_of(batch.ids_with(Status.GUARDED), Status.GUARDED)


def prune(
    queue: Queue, where: str, ids: Iterable[bytes] = (), *, samples: int = 0, dry_run: bool = False
) -> Iterator[list[bytes]]:
    """Remove entries of `delayed`, `buried` or `returns`, which stay if the item has data; or of
    `cleaning`, whose IDs are gone or in another structure. Yields the IDs of those, in batches.

    For `returns`, `samples` calls look at counts that are chosen at random: a clean that looked at
    all of them would grow with their number. If it looks at twice as many as it adds, at most about
    half of them are stale in the long run.
    """
    left = list(ids)
    budget = queue.budget("prune")
    size = budget.items
    if where == "cleaning" and left:
        # Each is looked for in the whole list.
        length = int(queue.call("LLEN", queue.keys.cleaning))
        size = max(1, min(size, budget.entries // (length + 1)))
    calls = ((0, batch) for batch in in_batches(left, items_max=size))
    done: set[bytes] = set()
    for sample, batch in chain(calls, repeat((BUDGET.items, list[bytes]()), samples)):
        pruned = queue.run("prune", *batch, which=where, sample=sample, dry_run=dry_run)
        if fresh := [item_id for item_id in pruned if item_id not in done]:
            done.update(fresh)
            yield fresh


T = TypeVar("T")
# It ends so long after its holder was killed.
LOCK_MS = 15_000
_RENEW_S = LOCK_MS / 3000
_POLL_S = 0.5


class CleanLock:
    """Holds `Q:clean-lock` within a `with` block; another clean is waited for.

    The scripts of a clean check everything again, so a lock that was lost, because its holder was
    stopped for a while, is only taken again. A dry run takes none.
    """

    def __init__(self, queue: Queue, *, dry_run: bool) -> None:
        self._queue = queue
        self._is_needed = not dry_run
        # A container may run as a user without a name.
        user = "?"
        with suppress(KeyError, OSError):
            user = getuser()
        self._holder = f"{user}@{gethostname()}:{getpid()}:{uuid4().hex[:8]}".encode()
        self._renewed_s = 0.0

    def __enter__(self) -> "CleanLock":
        self._take()
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_needed:
            # If the server is lost, the lock ends by itself.
            with suppress(ServerError):
                self._queue.run("clean_lock", holder=self._holder, lock_ms=0)

    def renew(self) -> None:
        """Keep the lock; call this between batches."""
        if self._queue.clock.monotonic() - self._renewed_s >= _RENEW_S:
            self._take()

    def kept(self, entries: Iterable[T]) -> Iterator[T]:
        """The entries; the lock is kept while they are read."""
        for entry in entries:
            self.renew()
            yield entry

    def sleep(self, seconds: float) -> None:
        """Wait, and keep the lock."""
        longest_s = LOCK_MS / 1000 - _RENEW_S
        while seconds > 0:
            self._take()
            self._queue.clock.sleep(min(seconds, longest_s))
            seconds -= longest_s

    def _take(self) -> None:
        queue, said = self._queue, None
        while self._is_needed:
            other = queue.run("clean_lock", holder=self._holder, lock_ms=LOCK_MS)
            if other is None:
                break
            if other != said:
                said = other
                name = text_of(queue.name)
                queue.connection.on_wait(f"waiting for another clean of {name}, by {text_of(said)}")
            queue.clock.sleep(_POLL_S)
        self._renewed_s = queue.clock.monotonic()
