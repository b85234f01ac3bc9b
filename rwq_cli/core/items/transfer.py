"""Moving items to a queue that no script reaches together with theirs: in another slot of a
cluster, another database or on another server."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from hashlib import sha1

from rwq_cli.core.batches import BUDGET, Budget, ProgressListener, in_batches
from rwq_cli.core.errors import DataLost, LockLost, ServerError, text_of
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.lines import Line
from rwq_cli.core.items.lock import QueueLock
from rwq_cli.core.items.operation import Operation
from rwq_cli.core.items.restore import restore
from rwq_cli.core.items.schedule import put_args
from rwq_cli.core.items.transit import MOVING_GUARD, Destination, data_lost, in_transit, push
from rwq_cli.core.keys import BURIED_GUARD
from rwq_cli.core.model import Lease, Outcome, OutcomeBatch, State, Status
from rwq_cli.core.server.commands import Command
from rwq_cli.core.server.patience import CancelToken
from rwq_cli.core.state.expected import Expected, token_of
from rwq_cli.core.state.located import Located
from rwq_cli.core.state.reads import existing
from rwq_cli.core.state.rules import Transit, transit_of
from rwq_cli.core.state.snapshots import ItemSnapshot, Skipped, read_snapshots

_ITEMS = frozenset(state for state in State if state.is_item)
_SCHEDULED = frozenset(state for state in State if state.is_scheduled)
# What a cut move has left is finished in parts of this many items.
_PART_ITEMS = 6 * BUDGET.items
# The field of `Q:moved:…` that names the mover.
_MOVER = b""
# How long that of a cut mover is kept once its copies are finished: so late may the last arrive.
_ENDED_S = 24 * 3600


class Transfer:
    """Moves items between two queues, one mover of the source at a time.

    Each item is buried in its queue, copied to the other one as a buried item, removed here, and
    kicked there. So at every instant it exists, and nobody can lease it twice: a buried item is
    left alone by every cleaner and worker. The script that removes it writes its ID into
    `Q:moved:…` of the source, which the mover has begun and deletes when all copies are kicked.

    A move that was cut leaves items that say where they were going. The next one of the same kind
    finishes it:

    | here            | in `Q:moved:…` | there           | what is done                         |
    | --------------- | -------------- | --------------- | ------------------------------------ |
    | anything        | yes            | the copy        | it is kicked                         |
    | anything        | no             | the copy        | it is removed: the original stayed,  |
    |                 |                |                 | or whoever took it away has it       |
    | buried to move  |                | nothing by then | copied again, removed, kicked        |

    A copy names its `Q:moved:…` and the mover: so it is known by whatever addresses a later move
    reaches the two queues. The next mover renames that of a cut one before it looks, and keeps it:
    so what the cut one has sent already, and what arrives late, removes nothing and adds nothing.
    Without it, this is another source, of whatever address, or has lost its data: the copy stays.
    One of an older rwq names neither: if its original is gone, and the move names the source as
    this one does, it is kicked.

    With `force`, leased items are moved, too, and their leases end. A transfer may be used for
    several rounds, each a `turn`.
    """

    def __init__(self, queue: Queue, to: Queue, *, force: bool) -> None:
        self._queue, self.to, self._force = queue, to, force
        # A request to stop waits until what is in transit has arrived, and the steps of a move have
        # no progress of their own.
        self._here, self._there = _undisturbed(queue), _undisturbed(to)
        # They name the server if they have two: another move is to another one.
        has_two = queue.connection.root is not to.connection.root
        self._source, destination = (
            end.connection.address.encode() if has_two else None for end in (queue, to)
        )
        self._lock = QueueLock(queue, "move")
        self._leaving = Transit(False, to.name, destination).reason
        place = sha1(self._leaving, usedforsecurity=False).hexdigest()[:12].encode()
        self._moved = queue.keys.moved(place)
        mover = _short(self._lock.holder)
        # The key of what another mover has ended of this one.
        self._ended = queue.keys.moved(mover)
        self._destination = Destination(self._there, mover)
        self._coming = Transit(True, queue.name, self._source, place, mover).reason
        # Whether what an older rwq may have left was looked for; and whether something is in
        # transit, for all that is known.
        self._has_looked, self._has_cut = False, True
        # Whether this turn has begun.
        self._has_begun = False

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Be the mover of the source within a block; another is waited for."""
        with self._lock:
            try:
                yield
                if self._has_begun:
                    self._check_source()
                self._destination.end()
            except LockLost:
                self._destination.end()
                raise
            finally:
                self._has_begun = False
                self._lock.moved = None if self._has_cut else self._moved

    def begin(self) -> Iterator[OutcomeBatch]:
        """Begin to move within a `turn`, or go on. If this is the first mover, or another has been
        at work since, finish what a cut one has left."""
        self._lock.renew()
        self._destination.check()
        # An ID that is used again must not seem to be removed.
        asking = ("HGET", self._moved, _MOVER), self._removal((), begins=True)
        mover, _ = self._here.call_all(asking)
        if mover == self._lock.holder:
            return
        if self._has_begun:
            self._check_source()
        self._has_begun = True
        self._has_cut = mover is not None or not self._has_looked
        ended = [self._end(self._moved, _short(mover))] if mover is not None else []
        self._here.call("HSET", self._moved, _MOVER, self._lock.holder)
        if self._has_cut:
            yield from self._finish_copies()
            self._expire(ended)
            yield from self._finish_originals()
        self._has_looked, self._has_cut = True, False

    def _check_source(self) -> None:
        """Raise if what this mover has begun is gone, and no other mover has ended it."""
        if isinstance(error := self._takeover(), DataLost):
            raise error

    def _takeover(self) -> ServerError:
        """The error to raise if what this mover has begun is not in the source any more."""
        asking = ("HGET", self._moved, _MOVER), ("EXISTS", self._ended)
        mover, was_ended = self._here.call_all(asking)
        return (
            self._lock.lost(mover) if mover or was_ended else data_lost(self._queue, is_source=True)
        )

    def burial(self, expected: Expected) -> Operation:
        """What buries items here, so that they can be carried."""
        if not self._force:
            # What was delayed or buried since it was read stays so.
            states = _ITEMS if expected.states is None else expected.states
            expected = expected._replace(states=states - _SCHEDULED)
        args = put_args("buried", b"", reason=self._leaving, force=self._force)
        return Operation(self._here, "put", args, expected=expected)

    def move(
        self, group: Sequence[Located], free: set[bytes], burial: Operation
    ) -> dict[bytes, Outcome]:
        """Move those of some calls that are free there, and whose data was read."""
        outcomes: dict[bytes, Outcome] = {}
        calls: list[Located] = []
        for call in group:
            # The others were added, or their leases have ended, since the items were read.
            late = Status.CHANGED if call.search == "name" else Status.ELSEWHERE
            unread = free.intersection(call.ids) - (call.saved or {}).keys()
            outcomes |= with_status(unread, late)
            calls.append(call.only(free - unread))
        data_read = {item.item_id: item for call in calls for item in call.read}
        items: list[ItemSnapshot] = []
        buried = Status.BURIED, Status.ALREADY_BURIED, Status.REASON_REPLACED
        with self._carrying():
            try:
                for batch in burial.send(calls):
                    # A mover that was stopped for long must not bury what the next one carries.
                    self._lock.keep()
                    outcomes |= {outcome.item_id: outcome for outcome in batch}
                    items += map(data_read.__getitem__, batch.ids_with(*buried))
                carried = self._carry(items)
            except ServerError as error:
                error.in_doubt, error.doubtful = True, len(data_read)
                raise
        return outcomes | {outcome.item_id: outcome for outcome in carried}

    def _carry(self, items: Sequence[ItemSnapshot]) -> OutcomeBatch:
        """Copy items that are buried here to the other queue, remove them here, kick them there.

        What cannot be moved is kicked here: the other queue has its ID, or its data was edited.
        """
        if not items:
            return OutcomeBatch.of(())
        statuses = {item.item_id: Status.CONFLICT for item in items}
        copied = self._copy(items)
        statuses |= self._remove_originals(item for item in items if item.item_id in copied)
        moved = [item_id for item_id in copied if statuses[item_id] is Status.MOVED]
        self._lock.keep()
        self._destination.kick(moved, self._coming)
        outdated = (i for i in copied if statuses[i] is not Status.MOVED)
        self._remove_copies(outdated, self._coming)
        gone = Status.MOVED, Status.MISSING
        staying = [item_id for item_id, status in statuses.items() if status not in gone]
        push(self._here, staying, self._leaving)
        return OutcomeBatch.of(Outcome(item_id, status) for item_id, status in statuses.items())

    def _copy(self, items: Sequence[ItemSnapshot]) -> dict[bytes, None]:
        """Add items to the other queue as buried ones, in their order; the IDs that it has now."""
        now_ms, guard = self._there.now_ms(), Lease(BURIED_GUARD + self._coming, None)
        copies = (
            item._replace(place=None, lease=guard, due_ms=None, buried_ms=now_ms + number / 1000)
            for number, item in enumerate(items, 1)
        )
        copied: dict[bytes, None] = {}
        for batch in restore(self._there, (Line(0, copy_) for copy_ in copies)).batches:
            copied.update(dict.fromkeys(batch.ids_with(Status.IMPORTED, Status.ALREADY_THERE)))
            if there := batch.ids_with(Status.ALREADY_THERE):
                # A copy that another mover has sent may still be removed. And if the address leads
                # to the source now, this is the original.
                guards = self._there.call("MGET", *map(self.to.keys.lease, there))
                for item_id, value in zip(there, guards, strict=True):
                    if (value or b"").startswith(MOVING_GUARD) and value != guard.holder:
                        del copied[item_id]
            self._lock.keep()
        return copied

    def _remove_originals(self, items: Iterable[ItemSnapshot]) -> dict[bytes, Status]:
        """Remove items here, and write that down: those that are still as they were copied."""
        batches = self._here.budget("remove_buried").split(items, _size_of)
        calls = []
        for batch in batches:
            words = [word for item in batch for word in (item.item_id, token_of(item.data))]
            calls.append(([item.item_id for item in batch], self._removal(words)))
        statuses: dict[bytes, Status] = {}
        for ids, reply in self._here.run_each(calls):
            if not reply[0]:
                raise self._takeover()
            outcomes = OutcomeBatch.from_reply(ids, reply)
            statuses.update((outcome.item_id, outcome.status) for outcome in outcomes)
        return statuses

    def _removal(self, words: Iterable[bytes], *, begins: bool = False) -> Command:
        """The command that removes items here, and writes that down."""
        return self._here.script(
            "remove_buried",
            *words,
            reason=self._leaving,
            moved=self._moved,
            holder=self._lock.holder,
            begins=begins,
        )

    def _remove_copies(self, ids: Iterable[bytes], reason: bytes) -> None:
        def command(batch: Sequence[bytes]) -> Command:
            words = (word for item_id in batch for word in (item_id, ""))
            return self._there.script(
                "remove_buried", *words, reason=reason, moved=None, holder=None, begins=False
            )

        batches = in_batches(ids, items_max=self._there.budget("remove_buried").items)
        deque(self._there.run_each((batch, command(batch)) for batch in batches), maxlen=0)

    def finishing(self) -> Iterator[OutcomeBatch]:
        """What `begin` would finish."""
        self._destination.check(dry_run=True)
        for _, _, arrived, _ in self._copies(ends=False):
            yield OutcomeBatch.all_of(arrived, Status.FINISHED)
        yield OutcomeBatch.all_of(in_transit(self._queue)[self._leaving], Status.FINISHED)

    def _finish_copies(self) -> Iterator[OutcomeBatch]:
        """Kick the copies that have arrived, and remove the others."""
        for reason, key, arrived, outdated in self._copies(ends=True):
            for ids in in_batches(arrived, items_max=_PART_ITEMS):
                self._lock.keep()
                self._destination.kick(ids, reason)
                yield OutcomeBatch.all_of(ids, Status.FINISHED)
            self._remove_copies(outdated, reason)
            self._expire([key])

    def _end(self, key: bytes, mover: bytes) -> bytes:
        """Let another mover remove nothing more here, even by calls that it has sent already.

        Returns:
            The key of what it has removed.
        """
        ended = self._queue.keys.moved(mover)
        self._here.call("RENAME", key, ended)
        return ended

    def _expire(self, ended: Iterable[bytes]) -> None:
        """Keep what cut movers have removed only for copies that arrive late."""
        self._here.call_all([("EXPIRE", key, _ENDED_S) for key in ended])

    def _finish_originals(self) -> Iterator[OutcomeBatch]:
        """Move what is buried to be moved."""
        for ids in in_batches(in_transit(self._queue)[self._leaving], items_max=_PART_ITEMS):
            reads = read_snapshots(self._here, [Located.unlisted(ids)], Skipped())
            items = (item for _, batch in reads for item in batch if item.reason == self._leaving)
            for part in Budget(bytes=4 * BUDGET.bytes).split(items, _size_of):
                with self._carrying():
                    outcomes = self._carry(part)
                self._has_cut = True
                yield OutcomeBatch.all_of(outcomes.ids_with(Status.MOVED), Status.FINISHED)
                yield outcomes.without(Status.MOVED)
                self.stop_if_asked()

    def _copies(self, *, ends: bool) -> Iterator[tuple[bytes, bytes, list[bytes], list[bytes]]]:
        """By reason, the key of what its mover has removed here, the copies whose originals that
        are, and the others, in order.

        With `ends`, their movers remove nothing more here, so that this stays so.
        """
        for reason, copies in in_transit(self.to).items():
            transit = transit_of(reason)
            if transit is None or not transit.is_copy or transit.queue != self._queue.name:
                continue
            mover, key = transit.mover or b"", self._queue.keys.moved(transit.place or b"")
            holder = self._queue.call("HGET", key, _MOVER)
            if holder is None or _short(holder) != mover:
                key = self._queue.keys.moved(mover)
            elif ends:
                key = self._end(key, mover)
            moved = set(self._queue.call("HKEYS", key))
            if not moved:
                if mover or transit.server != self._source:
                    self._queue.connection.tell(
                        f"{text_of(self.to.name)} has items in transit that this source does not "
                        "know: the mv that began with them finishes them; if their source or its "
                        "data is gone, rwq release --force gives them to workers",
                        "copies",
                    )
                    continue
                moved = set(copies).difference(existing(self._queue, copies))
            arrived = [item_id for item_id in copies if item_id in moved]
            outdated = [item_id for item_id in copies if item_id not in moved]
            yield reason, key, arrived, outdated

    @contextmanager
    def _carrying(self) -> Iterator[None]:
        """In the block, a first Ctrl-C is only noted."""
        connection = self._queue.connection
        connection.stop.is_polled = self._has_cut = True
        try:
            yield
        except ServerError as error:
            if not isinstance(error, DataLost):
                name = text_of(self._queue.name)
                error.hint = (
                    f"what has not arrived is buried in {name}: the same rwq mv moves it, "
                    "rwq kick --reason 'being moved to *' returns it"
                )
            raise
        except KeyboardInterrupt:
            connection.on_wait("rwq: items in transit are buried; the same mv finishes them")
            raise
        finally:
            connection.stop.is_polled = False
        self._has_cut = False

    def stop_if_asked(self) -> None:
        if self._queue.connection.stop.requested:
            raise KeyboardInterrupt


def _undisturbed(queue: Queue) -> Queue:
    """The same queue over the same connections, but no request to stop cuts its calls, and they
    have no progress."""
    connection = copy(queue.connection.root)
    connection.stop, connection.progress = CancelToken(), ProgressListener()
    return queue.on(connection)


def _short(holder: bytes) -> bytes:
    """What names a mover in the reasons of copies."""
    return holder.rpartition(b":")[2]


def _size_of(item: ItemSnapshot) -> int:
    return len(item.data)


def with_status(ids: Iterable[bytes], status: Status) -> dict[bytes, Outcome]:
    return {item_id: Outcome(item_id, status) for item_id in ids}
