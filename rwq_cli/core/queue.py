"""The work queue: one object with a method for each thing that can be done to a queue."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import uuid4

from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import InvalidArgument, ServerError
from rwq_cli.core.handle import Queue, to_bytes
from rwq_cli.core.model import (
    CleanAction,
    Counts,
    Due,
    Item,
    Lease,
    NewItem,
    NewItems,
    Outcomes,
    State,
    Status,
)

if TYPE_CHECKING:
    from rwq_cli.core.inspect.forecast import Forecast
    from rwq_cli.core.inspect.listing import Selection, Source
    from rwq_cli.core.inspect.report import Detail, ItemReport
    from rwq_cli.core.inspect.thresholds import Check, Limits, Measure
    from rwq_cli.core.items.all_results import ResultCount, ResultTally
    from rwq_cli.core.items.exporting import Export
    from rwq_cli.core.items.importing import OnConflict
    from rwq_cli.core.items.lease import Leased
    from rwq_cli.core.items.lease_by_id import Picked
    from rwq_cli.core.items.purge import Leftovers
    from rwq_cli.core.items.remove import Destination, Journal
    from rwq_cli.core.items.result_options import ResultOptions
    from rwq_cli.core.items.results import Result, ResultLook
    from rwq_cli.core.items.schedule import Burial, Delay
    from rwq_cli.core.items.waiting import WaitCondition, WaitResult
    from rwq_cli.core.repair.doctor import Diagnosis
    from rwq_cli.core.repair.findings import Code
    from rwq_cli.core.state.snapshot import ItemSnapshot

# The modules that do the work are imported by the method that needs them: a point command then
# loads one of them and not ten, which a shell loop pays for on every turn.

FOREVER = float("inf")


class WorkQueue(Queue):
    """A queue of redis-work-queue, shared with workers in any language.

    >>> from rwq_cli.core import Server, WorkQueue, connect
    >>> queue = WorkQueue(connect(Server("redis://localhost:6379/0")), "jobs")
    >>> queue.add(b"some work")  # doctest: +SKIP

    Every operation is atomic on the server: to be killed at any instant leaves no half step. Names
    and IDs are bytes; text is taken as its UTF-8.

    Args:
        connection: The server, as `connect` gives it.
        name: The queue's name, which is the prefix of its keys.
        holder: What to write into leases; None for a random session.
        clock: Measures waiting; tests bring their own.

    Raises:
        InvalidArgument: The name is empty.
    """

    def add(
        self,
        data: bytes | str,
        item_id: bytes | str | None = None,
        *,
        delay_s: float | None = None,
        at_ms: int | None = None,
    ) -> bool:
        """Add one item.

        Args:
            data: Its payload.
            item_id: Its ID; None for a random one.
            delay_s: Put it off for so long, seconds by the server's clock; None for not at all.
            at_ms: Put it off until then, unix ms by the server's clock; None for not at all.

        Raises:
            InvalidArgument: The ID is empty, or both a delay and a time are given.
            ServerError: The server refused, or was lost.

        Returns:
            Whether it was added: False if an item with this ID exists.
        """
        new_id = uuid4().hex.encode() if item_id is None else to_bytes(item_id)
        due = None
        if delay_s is not None and at_ms is not None:
            raise InvalidArgument("a delay and a time exclude each other", "give one of them")
        if delay_s is not None:
            due = Due(delay_s * 1000, from_now=True)
        elif at_ms is not None:
            due = Due(at_ms, from_now=False)
        (outcome,) = self.add_many([NewItem(new_id, to_bytes(data), due)])
        return outcome.status is Status.ADDED

    def add_unique(self, data: bytes | str, item_id: bytes | str | None = None) -> None:
        """Add one item whose ID the caller knows not to be in the queue, without the check.

        Raises:
            InvalidArgument: The ID is empty.
            ServerError: The server refused, or was lost.
        """
        new_id = uuid4().hex.encode() if item_id is None else to_bytes(item_id)
        list(self.add_many([NewItem(new_id, to_bytes(data))], unique=True))

    def add_many(
        self, items: Iterable[NewItem | Flush], *, unique: bool = False, dry_run: bool = False
    ) -> Outcomes:
        """Add a stream of items; see `rwq_cli.core.items.add.add_batches`."""
        from rwq_cli.core.items import add as adding

        return self.add_batches(adding.batched_items(items), unique=unique, dry_run=dry_run)

    def add_batches(
        self, batches: Iterable[NewItems | Flush], *, unique: bool = False, dry_run: bool = False
    ) -> Outcomes:
        """Add items in batches of the caller's; see `rwq_cli.core.items.add.add_batches`."""
        from rwq_cli.core.items import add as adding
        from rwq_cli.core.items import dry_run as rehearsal

        verb = rehearsal.would_add if dry_run else adding.add_batches
        return Outcomes(verb(self, batches, unique=unique))

    def lease(self, *, lease_s: float = 300.0, wait_s: float = 0.0) -> Item | None:
        """Lease the next item.

        Args:
            lease_s: How long the lease lasts, seconds.
            wait_s: How long to wait for an item, seconds; `FOREVER` until there is one.

        Raises:
            ServerError: The server refused, or was lost.

        Returns:
            The item with its data, or None if there was none in time.
        """
        items = self.lease_many(1, lease_s=lease_s, wait_s=wait_s)
        item = next(items, None)
        # What is promoted after it must not cost the caller the item.
        with suppress(ServerError):
            deque(items, maxlen=0)
        return item

    def lease_many(
        self, count: int, *, lease_s: float = 300.0, wait_s: float = 0.0, data: bool = True
    ) -> "Leased":
        """Lease up to `count` items, waiting only for the first.

        Without their data the items are empty: for who needs only the IDs.

        See `rwq_cli.core.items.lease.lease_batches`.
        """
        return lease_from([self], count, lease_s=lease_s, wait_s=wait_s, data=data)

    def lease_ids(
        self,
        ids: Iterable[bytes | str],
        *,
        lease_s: float = 300.0,
        data: bool = True,
        dry_run: bool = False,
    ) -> "Iterator[Picked]":
        """Lease these items, wherever they wait; see `items.lease_by_id.pick_items`."""
        from rwq_cli.core.items import lease_by_id as picking

        wanted = map(to_bytes, ids)
        if dry_run:
            self.connection.look_only()
            return picking.would_pick(self, wanted)
        lease = Lease(self.holder, max(1, round(lease_s * 1000)))
        return picking.pick_items(self, wanted, lease=lease, data=data)

    def complete(
        self,
        ids: Iterable[bytes | Flush],
        *,
        owner: bytes | None = None,
        result_options: "ResultOptions | None" = None,
        dry_run: bool = False,
    ) -> Outcomes:
        """Complete items; see `rwq_cli.core.items.lease.complete_items`."""
        from rwq_cli.core.items import dry_run as rehearsal
        from rwq_cli.core.items import lease as leasing

        verb = rehearsal.would_complete if dry_run else leasing.complete_items
        return Outcomes(verb(self, ids, owner=owner, result_options=result_options))

    def result(
        self, item_id: bytes | str, *, wait: bool = False, timeout_s: float = FOREVER
    ) -> "ResultLook":
        """What is kept of a completed item; see `rwq_cli.core.items.results.look_for_result`.

        Args:
            item_id: Its ID.
            wait: Until no item of this ID exists, if one does.
            timeout_s: For how long, seconds.

        Raises:
            ServerError: The server refused, or was lost.
        """
        from rwq_cli.core.items import results

        wanted = to_bytes(item_id)
        if not wait:
            return results.look_for_result(self, wanted)
        return results.wait_for_result(self, wanted, timeout_s=timeout_s, clock=self.clock)

    def results(self, ids: Sequence[bytes]) -> "list[Result | None]":
        """What is kept of each, without the results' bytes; `rwq_cli.core.items.results.peek`."""
        from rwq_cli.core.items import results

        return results.peek(self, ids)

    def result_kinds(self, ids: Sequence[bytes]) -> list[str]:
        """What is under the key of each one's result; see `rwq_cli.core.items.results.kinds_of`."""
        from rwq_cli.core.items import results

        return results.kinds_of(self, ids)

    def touch(
        self, ids: Iterable[bytes | Flush], *, lease_s: float = 300.0, dry_run: bool = False
    ) -> Outcomes:
        """Give live leases a new expiry; see `rwq_cli.core.items.lease.touch_items`."""
        from rwq_cli.core.items import dry_run as rehearsal
        from rwq_cli.core.items import lease as leasing

        if dry_run:
            return Outcomes(rehearsal.would_touch(self, ids))
        lease_ms = max(1, round(lease_s * 1000))
        return Outcomes(leasing.touch_items(self, ids, lease_ms=lease_ms))

    def release(
        self,
        ids: Iterable[bytes | Flush],
        *,
        force: bool = False,
        front: bool = False,
        delay_s: float = 0.0,
        dry_run: bool = False,
    ) -> Outcomes:
        """Put items back: now, or when a delay has passed.

        See `rwq_cli.core.items.lease.release_items` and `rwq_cli.core.items.schedule.Delay`.

        Args:
            ids: The IDs.
            force: End leases that others hold, too.
            front: Make them the next to be leased.
            delay_s: For how long to put them off, seconds; 0 for not at all.
            dry_run: Change nothing, and say what would be done.

        Raises:
            InvalidArgument: Both `front` and a delay were given.
        """
        from rwq_cli.core.items import dry_run as rehearsal
        from rwq_cli.core.items import lease as leasing
        from rwq_cli.core.items import schedule as parking
        from rwq_cli.core.items.bulk import LeasePolicy

        delay_ms = round(delay_s * 1000)
        if delay_ms > 0:
            if front:
                raise InvalidArgument("front and delay exclude each other", "give one of them")
            return self._park(ids, parking.Delay(delay_ms), force=force, dry_run=dry_run)
        lease_policy = LeasePolicy(self.holder, force)
        verb = rehearsal.would_release if dry_run else leasing.release_items
        return Outcomes(verb(self, ids, lease_policy, front=front))

    def bury(
        self,
        ids: Iterable[bytes | Flush],
        *,
        reason: bytes | None = None,
        force: bool = False,
        dry_run: bool = False,
    ) -> Outcomes:
        """Set items aside until they are kicked; see `rwq_cli.core.items.schedule.Burial`."""
        from rwq_cli.core.items import schedule as parking

        return self._park(ids, parking.Burial(reason), force=force, dry_run=dry_run)

    def _park(
        self, ids: Iterable[bytes | Flush], how: "Burial | Delay", *, force: bool, dry_run: bool
    ) -> Outcomes:
        from rwq_cli.core.items import dry_run as rehearsal
        from rwq_cli.core.items import schedule as parking
        from rwq_cli.core.items.bulk import LeasePolicy

        verb = rehearsal.would_park if dry_run else parking.park_items
        lease_policy = LeasePolicy(self.holder, force)
        return Outcomes(verb(self, ids, lease_policy, how))

    def kick(self, ids: Iterable[bytes | Flush], *, dry_run: bool = False) -> Outcomes:
        """Bring buried items back; see `rwq_cli.core.items.schedule.kick_items`."""
        from rwq_cli.core.items import dry_run as rehearsal
        from rwq_cli.core.items import schedule as parking

        verb = rehearsal.would_kick if dry_run else parking.kick_items
        return Outcomes(verb(self, ids))

    def export(self, chosen: frozenset[bytes] | None = None) -> "Export":
        """Everything of the queue, or the chosen items: `rwq_cli.core.items.exporting.Export`."""
        from rwq_cli.core.items import exporting

        self.connection.look_only()
        return exporting.Export(self, chosen)

    def put(
        self,
        entries: "Iterable[ItemSnapshot | Result | Flush]",
        *,
        on_conflict: "OnConflict",
        at_front: bool = False,
        results: "ResultTally | None" = None,
        dry_run: bool = False,
    ) -> Outcomes:
        """Put items and results in as they were; see `rwq_cli.core.items.importing.put_all`."""
        from rwq_cli.core.items import all_results, importing

        return Outcomes(
            importing.put_all(
                self,
                entries,
                on_conflict=on_conflict,
                at_front=at_front,
                tally=results or all_results.ResultTally(),
                dry_run=dry_run,
            )
        )

    def take(
        self,
        ids: Iterable[bytes | Flush],
        journal: "Journal",
        *,
        destination: "Destination | None" = None,
        unchanged: "Callable[[ItemSnapshot], bool] | None" = None,
        dry_run: bool = False,
    ) -> Outcomes:
        """Remove items, or move them to another queue; see `rwq_cli.core.items.remove.Remover`."""
        from rwq_cli.core.items import remove as taking

        self.connection.look_only()
        if dry_run:
            return Outcomes(taking.would_take(self, ids, destination))
        run = taking.Remover(self, journal, destination, unchanged)
        return Outcomes(run.take_ids(ids))

    def take_back(
        self,
        snapshots: "Callable[[], Iterable[ItemSnapshot]]",
        came_to: bytes,
        *,
        dry_run: bool = False,
    ) -> Outcomes:
        """Move items back from another queue; see `rwq_cli.core.items.remove.take_back`."""
        from rwq_cli.core.items import remove as taking

        self.connection.look_only()
        return Outcomes(taking.take_back(self, snapshots, self.sibling(came_to), dry_run=dry_run))

    def count_leased(self, ids: Sequence[bytes]) -> int:
        """How many of these items somebody holds under a lease."""
        from rwq_cli.core.inspect.report import probe
        from rwq_cli.core.state.rules import is_guard

        looks = probe(self, ids)
        return sum(
            look.has_data and look.lease is not None and not is_guard(look.lease) for look in looks
        )

    def purge(
        self,
        journal: "Journal",
        *,
        grace_s: float = 1.0,
        leftovers: "Leftovers | None" = None,
        dry_run: bool = False,
    ) -> Outcomes:
        """Remove everything; see `rwq_cli.core.items.purge.purge`."""
        from rwq_cli.core.items import purge as purging

        self.connection.look_only()
        if dry_run:
            return Outcomes(purging.would_purge(self))
        return Outcomes(
            purging.purge(
                self,
                journal,
                grace_s=grace_s,
                sleep=self.clock.sleep,
                leftovers=leftovers,
            )
        )

    def count_results(self) -> "ResultCount":
        """How many results are kept; see `rwq_cli.core.items.all_results.count_all`."""
        from rwq_cli.core.items import all_results

        self.connection.look_only()
        return all_results.count_all(self)

    def count_items(self) -> int:
        """How many items there are in any state; `rwq_cli.core.items.purge.count_items`."""
        from rwq_cli.core.items import purge as purging

        return purging.count_items(self)

    def light_clean(
        self, *, grace_s: float = 1.0, dry_run: bool = False, bury_after: int | None = None
    ) -> Iterator[CleanAction]:
        """Return what dead workers left; see `rwq_cli.core.repair.clean.light_clean`."""
        from rwq_cli.core.repair import clean as cleaning

        return cleaning.light_clean(
            self,
            grace_s=grace_s,
            dry_run=dry_run,
            sleep=self.clock.sleep,
            bury_after=bury_after,
        )

    def deep_clean(
        self, *, grace_s: float = 1.0, dry_run: bool = False, bury_after: int | None = None
    ) -> Iterator[CleanAction]:
        """Mend the whole queue; see `rwq_cli.core.repair.clean.deep_clean`."""
        from rwq_cli.core.repair import clean as cleaning

        return cleaning.deep_clean(
            self,
            grace_s=grace_s,
            dry_run=dry_run,
            sleep=self.clock.sleep,
            bury_after=bury_after,
        )

    def diagnose(
        self,
        *,
        codes: "Iterable[Code] | None" = None,
        fix: bool = False,
        grace_s: float = 1.0,
        dry_run: bool = False,
        all_ids: bool = False,
    ) -> "Diagnosis":
        """Find what is wrong, and cure it if asked to; see `rwq_cli.core.repair.doctor.diagnose`.

        Args:
            codes: What to look for, and to cure; None for everything.
            fix: Cure what can be cured without choosing for the user.
            grace_s: How long something must look broken, seconds.
            dry_run: Change nothing, and say what would be done.
            all_ids: Give all IDs of a finding and not five.

        Raises:
            ServerError: The server refused, or was lost.
        """
        from rwq_cli.core.inspect import foreign_keys as belongings
        from rwq_cli.core.repair import doctor as diagnosing
        from rwq_cli.core.repair.findings import Code

        return diagnosing.diagnose(
            self,
            codes=frozenset(Code if codes is None else codes),
            fix=fix,
            dry_run=dry_run,
            grace_s=grace_s,
            sleep=self.clock.sleep,
            examples_max=None if all_ids else belongings.EXAMPLES,
        )

    def lengths(self) -> Counts:
        """The lengths of the queue's structures; see `inspect.counting.count_lengths`."""
        from rwq_cli.core.inspect import counting

        return counting.count_lengths(self)

    def wait(
        self, condition: "WaitCondition | None" = None, *, timeout_s: float = FOREVER
    ) -> "WaitResult":
        """Wait until the queue is empty, or for another condition; `items.waiting.wait_until`."""
        from rwq_cli.core.items import waiting

        return waiting.wait_until(
            self,
            condition or waiting.WaitCondition(),
            timeout_s=timeout_s,
            clock=self.clock,
        )

    def counts(self, *, deep: bool = False) -> Counts:
        """Counts by state; see `rwq_cli.core.inspect.counting.count_states`."""
        from rwq_cli.core.inspect import counting

        sample = self.connection.look_only()
        return counting.count_states(self, sample_sizes=sample, deep=deep)

    def check(
        self, limits: "Mapping[Measure, Limits]", *, deep: bool = False, grace_s: float = 1.0
    ) -> "Check":
        """The counts, evaluations by limits; see `rwq_cli.core.inspect.thresholds.check`."""
        from rwq_cli.core.inspect import thresholds as checking

        return checking.check(
            self,
            limits,
            deep=deep,
            grace_s=grace_s,
            sleep=self.clock.sleep,
        )

    def items(
        self,
        source: "Source",
        selection: "Selection | None" = None,
        *,
        limit: int | None = None,
        offset: int = 0,
        tail: bool = False,
        data: bool = False,
        bare: bool = False,
    ) -> Iterator[Item]:
        """Items of the lists, in pages; see `rwq_cli.core.inspect.listing.list_items`.

        Args:
            source: Which lists.
            selection: Which of their items; None for all.
            limit: How many at most; None for all.
            offset: How many to leave out first.
            tail: From the other end.
            data: Read all of the data. Without it, sizes and previews are read only where the
                server does not count that as use.
            bare: Read neither, nor idle times: IDs and states alone.
        """
        from rwq_cli.core.inspect import listing

        return listing.list_items(
            self,
            source,
            selection or listing.Selection(),
            self._detail(data, bare),
            limit=limit,
            offset=offset,
            tail=tail,
        )

    def listed_ids(
        self, source: "Source", *, limit: int | None = None, offset: int = 0, tail: bool = False
    ) -> "Iterator[Sequence[bytes]]":
        """The IDs alone of what waits, is delayed or buried: `inspect.listing.list_ids`."""
        from rwq_cli.core.inspect import listing

        return listing.list_ids(self, source, limit=limit, offset=offset, tail=tail)

    def choose(
        self, selection: "Selection", *, limit: int | None = None, grace_s: float = 1.0
    ) -> list[bytes]:
        """The IDs of many items, to act on; see `rwq_cli.core.inspect.selection.choose_ids`."""
        from rwq_cli.core.inspect import selection as selecting

        self.connection.look_only()
        return selecting.choose_ids(
            self,
            selection,
            limit=limit,
            grace_s=grace_s,
            sleep=self.clock.sleep,
        )

    def leases(
        self,
        *,
        limit: int | None = None,
        holder_glob: bytes | None = None,
        data: bool = False,
        bare: bool = False,
    ) -> Iterator[Item]:
        """The items in processing, most urgent first: `inspect.listing.list_leases`."""
        from rwq_cli.core.inspect import listing

        return listing.list_leases(
            self,
            self._detail(data, bare),
            limit=limit,
            holder_glob=holder_glob,
        )

    def facts(self, ids: Iterable[bytes]) -> "Iterator[ItemReport]":
        """What is known of each ID; see `rwq_cli.core.inspect.report.facts_of`."""
        from rwq_cli.core.inspect import report as looking

        self.connection.look_only()
        return looking.facts_of(self, ids)

    def forecast(
        self, item_reports: "Sequence[ItemReport]", *, sample_s: float
    ) -> "list[Forecast | None]":
        """When items' turns come; see `rwq_cli.core.inspect.forecast.forecast`."""
        from rwq_cli.core.inspect.forecast import forecast

        return forecast(
            self,
            item_reports,
            sample_s=sample_s,
            monotonic=self.clock.monotonic,
            sleep=self.clock.sleep,
        )

    def state(self, item_id: bytes | str) -> State:
        """The state of one ID.

        Raises:
            ServerError: The server refused, or was lost.
        """
        from rwq_cli.core.state.rules import state_of

        (item_report,) = self.facts([to_bytes(item_id)])
        return state_of(item_report.facts)

    def describe(self, item_report: "ItemReport", *, data: bool = False) -> Item:
        """The item that a item_report is of, with its idle time, size and preview."""
        from rwq_cli.core.inspect import report as looking

        item = looking.item_from(self.name, item_report.facts, item_report.position)
        detail = self._detail(data)
        (full,) = looking.with_details(self, [item], detail)
        return full

    def _detail(self, data: bool, bare: bool = False) -> "Detail":
        from rwq_cli.core.inspect.report import Detail

        return Detail(sizes=self.connection.look_only(), data=data, bare=bare)


def lease_from(
    queues: "Sequence[WorkQueue]",
    count: int,
    *,
    lease_s: float = 300.0,
    wait_s: float = 0.0,
    data: bool = True,
    shuffle: "Callable[[list[Queue]], object] | None" = None,
) -> "Leased":
    """Lease up to `count` items of the first queue that has any, waiting only for the first item.

    They are leased as the first queue's holder.

    Args:
        queues: The queues, the one to be preferred first, on one connection; one that is named
            twice counts once.
        count: How many items at most.
        lease_s: How long the leases last, seconds.
        wait_s: How long to wait until one of them has an item, seconds.
        data: Return the payloads.
        shuffle: Changes the order of the queues before each attempt, such as `random.shuffle`;
            None leaves it as it is.

    Raises:
        InvalidArgument: There is no queue, or they are not on one connection.
        ServerError: The server refused, or was lost.

    Returns:
        The items, all of one queue; see `rwq_cli.core.items.lease.lease_batches`.
    """
    from rwq_cli.core.items import lease as leasing

    first, distinct = _on_one_connection(queues)
    lease_ms = max(1, round(lease_s * 1000))
    batches = leasing.lease_batches(
        distinct,
        leasing.LeaseRequest(count, first.holder, lease_ms, data),
        wait_s=wait_s,
        clock=first.clock,
        shuffle=shuffle,
    )
    return leasing.Leased(Lease(first.holder, lease_ms), batches)


def would_lease_from(
    queues: "Sequence[WorkQueue]",
    count: int,
    *,
    shuffle: "Callable[[list[Queue]], object] | None" = None,
) -> Iterator[Item]:
    """The items that `lease_from` would lease now; see `rwq_cli.core.items.dry_run.would_lease`.

    Raises:
        InvalidArgument: There is no queue, or they are not on one connection.
        ServerError: The server refused, or was lost.
    """
    from rwq_cli.core.items import dry_run as rehearsal

    first, distinct = _on_one_connection(queues)
    first.connection.look_only()
    return rehearsal.would_lease(distinct, count, shuffle=shuffle)


def _on_one_connection(queues: "Sequence[WorkQueue]") -> tuple[WorkQueue, list[WorkQueue]]:
    """The first of the queues, and the keys of each, once."""
    if not queues:
        raise InvalidArgument("no queue to lease from", "name one")
    first = queues[0]
    if any(queue.connection is not first.connection for queue in queues):
        raise InvalidArgument("the queues are not on one connection", "open them on the same")
    return first, list({queue.name: queue for queue in queues}.values())
