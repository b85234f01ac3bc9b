"""The work queue: a queue handle with the operations of the library as its methods."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import inf
from typing import TYPE_CHECKING, overload

from rwq_cli.core.acting import ActingQueue, LeasedItem
from rwq_cli.core.clock import GRACE_S, LEASE_S, RESULT_TTL_S, checked_s
from rwq_cli.core.errors import InvalidArgument, LeaseLost, RwqError
from rwq_cli.core.handle import Lazy, Queue
from rwq_cli.core.model import Counts, Item, Outcomes, State, Status

if TYPE_CHECKING:
    from datetime import datetime
    from typing import Unpack

    from rwq_cli.core.inspect import counting, listing, lookup
    from rwq_cli.core.inspect.selection import Selection, Source
    from rwq_cli.core.items import add as adding, lease as leasing, results
    from rwq_cli.core.items.add import NewItem
    from rwq_cli.core.items.results import ResultLookup
    from rwq_cli.core.repair import clean as cleaning, doctor
    from rwq_cli.core.repair.clean import CleanAction
    from rwq_cli.core.repair.doctor import Diagnosis
    from rwq_cli.core.repair.findings import Code
    from rwq_cli.core.work import control, loop, session
    from rwq_cli.core.work.control import StopToken, WorkEvent, WorkOptions, WorkSummary
    from rwq_cli.core.work.job import BatchValue, Handler, Job, RetryPolicy, Value
else:
    counting, listing, lookup = map(Lazy, ("inspect.counting", "inspect.listing", "inspect.lookup"))
    adding, leasing, results = map(Lazy, ("items.add", "items.lease", "items.results"))
    cleaning, doctor = map(Lazy, ("repair.clean", "repair.doctor"))
    control, loop, session = map(Lazy, ("work.control", "work.loop", "work.session"))


class WorkQueue(ActingQueue):
    """A redis-work-queue queue, shared with workers in any language.

    >>> from rwq_cli.core import Server, WorkQueue, connect
    >>> queue = WorkQueue(connect(Server("redis://localhost:6379/0")), "jobs")
    >>> queue.add(b"some work")  # doctest: +SKIP

    Each item is changed in one atomic step on the server, except by a move to another server or
    slot of a cluster. A client that is killed leaves no step half done. Names, IDs and data are
    bytes; text is encoded as UTF-8. Durations are seconds.

    Methods that change something do so when they are called. Those whose names end in `_many` take
    any number of items, and hold one batch in memory: they return an iterator, and do their work
    while it is read. The outcomes of several IDs may come in another order.
    """

    def add(
        self,
        data: bytes | str,
        item_id: bytes | str | None = None,
        *,
        delay_s: float | None = None,
        at: "datetime | float | None" = None,
    ) -> bool:
        """Add one item; return False if an item with this ID exists. None is a random ID.

        It is due after `delay_s` seconds, or `at` an aware datetime or Unix seconds, by the
        server's clock.

        Raises:
            InvalidArgument: The ID is empty, or both a delay and a time are given.
            WrongType: The data key or a lease key of this ID has the wrong type.
        """
        return adding.add(self, data, item_id, delay_s=delay_s, at=at)

    def add_many(self, items: "Iterable[NewItem]", *, unique: bool = False) -> Outcomes:
        """Add a stream of items, in batches: `ADDED`, `DUPLICATE` or `WRONG_TYPE`, in order.

        `unique` skips the duplicate check, because no ID is in the queue. If that is wrong, the
        item is replaced and its ID is in the queue twice.

        Raises:
            InvalidArgument: An ID is empty.
            ServerError: `acknowledged` is the number of items whose outcomes are known; each batch
                in flight was added completely or not at all.
        """
        return adding.add_batches(self, adding.batched_items(items), unique=unique)

    def lease(self, *, for_s: float = LEASE_S, wait_s: float = 0.0) -> LeasedItem | None:
        """Lease the next item, with its data, for `for_s` seconds; None if there is none.

        It waits for an item for `wait_s` seconds; with infinity, until there is one.

        Raises:
            InvalidArgument: The lease would last less than 1 ms.
            ServerError: If `in_doubt`, an item may be leased; a clean returns it when the lease
                has ended.
        """
        return next(self.lease_many(1, for_s=for_s, wait_s=wait_s), None)

    def lease_many(
        self, count: int, *, for_s: float = LEASE_S, wait_s: float = 0.0
    ) -> Iterator[LeasedItem]:
        """Lease up to this many items, waiting only for the first; see `lease`.

        They are leased in batches of up to 250, several of which are requested ahead. If you stop
        reading, those that were not read stay leased until their leases end: release them, as by
        `for item in leased_items: item.release()`, or lease fewer at a time.
        """
        wait_s = checked_s("a wait", max(wait_s, 0.0), may_be_endless=True)
        items = leasing.lease_from([self], count, lease_s=for_s, wait_s=wait_s)
        return (LeasedItem.of(item, self) for item in items)

    @contextmanager
    def leased(self, *, for_s: float = LEASE_S, wait_s: float = 0.0) -> Iterator[LeasedItem | None]:
        """Lease the next item, or None, for a block: `with queue.leased(for_s=60) as item`.

        At the end of the block the item is completed, unless the block has completed, released or
        buried it: `LeaseLost` if its lease has ended. An exception in the block returns it to the
        end of the queue. The lease is not renewed: see `LeasedItem.touch`, and `work`.
        """
        item = self.lease(for_s=for_s, wait_s=wait_s)
        try:
            yield item
        except BaseException:
            if item and not item.is_ended:
                # If the server is gone, a clean returns the item when its lease has ended.
                with suppress(RwqError):
                    item.release()
            raise
        if item and not item.is_ended and item.complete().status is not Status.COMPLETED:
            raise LeaseLost.of(item.item_id)

    @overload
    def work(
        self,
        handler: "Callable[[Job], Value]",
        *,
        batch: None = None,
        **options: "Unpack[WorkOptions]",
    ) -> "WorkSummary": ...

    @overload
    def work(
        self,
        handler: "Callable[[list[Job]], BatchValue]",
        *,
        batch: int,
        **options: "Unpack[WorkOptions]",
    ) -> "WorkSummary": ...

    def work(
        self,
        handler: "Handler",
        *,
        more_queues: "Sequence[Queue]" = (),
        fair: bool = False,
        concurrency: int = 1,
        batch: int | None = None,
        for_s: float = LEASE_S,
        policy: "RetryPolicy | None" = None,
        result_ttl_s: float = RESULT_TTL_S,
        drain: bool = False,
        max_items: float = inf,
        max_failures: float = inf,
        idle_s: float = inf,
        reconnect_s: float = 300.0,
        rate: float = inf,
        stop: "StopToken | None" = None,
        stop_s: float = 10.0,
        on_event: "Callable[[WorkEvent], object] | None" = None,
    ) -> "WorkSummary":
        """Call a function for each item, until the worker is to end.

        The item is completed when the function returns, and kept leased until then; bytes that it
        returns are kept as the result. An exception is a failed attempt: the item is retried later,
        and after its last attempt buried with the exception as the reason. A function can also
        return `PutBack` or `GiveUp`, or a `Failure` of its own; anything else is a failed attempt,
        too. Nothing is done with an item whose lease was lost.

        An exception that is not an `Exception`, such as KeyboardInterrupt, puts the item back and
        ends the worker. With several functions at once, an interrupt of the calling thread takes no
        more items and is raised when they have returned; a second one puts their items back.

        Args:
            handler: The function. With a concurrency of 1 it runs in the calling thread, else in
                so many threads at once.
            more_queues: More queues on the same connection, in order of preference after this one;
                if `fair`, all are tried in random order.
            batch: Call the function for a list of up to this many jobs, of one queue, which all end
                as it says, or each as a list says that it returns.
            for_s: How long a lease lasts, seconds; it is renewed while the function runs.
            policy: When failed items are tried again; None for the default.
            result_ttl_s: How long results are kept, seconds.
            drain: End when no queue has an item to lease, and this worker has no retries pending.
                It also ends after `max_items` items, after `max_failures` failures, after `idle_s`
                seconds without work, and by `stop`: after the items that run.
            reconnect_s: How long the server may be gone, or may refuse the end of an item, seconds.
                Then the error is raised.
            rate: At most how many items are taken a second, one or a `batch` at a time.
            stop_s: How long the server may take to acknowledge the last ends when it was told to
                `stop` and no function runs any more, seconds. Those that it has not are lost.
            on_event: Called for each event, by one thread at a time.

        Raises:
            InvalidArgument: A number is too small, or the queues are not on one connection.
            TypeError: The handler is a coroutine function.
            ServerError: The server refused a call, was never reached, or was gone for too long. A
                clean returns items that are still leased when their leases have ended.
        """
        queues = (self, *more_queues)
        for what, seconds in (
            ("an idle time", idle_s),
            ("a time to reconnect", reconnect_s),
            ("a time to stop", stop_s),
        ):
            checked_s(what, seconds, may_be_endless=True)
        with session.WorkSession(
            queues, lease_s=for_s, policy=policy, fair=fair, result_ttl_s=result_ttl_s
        ) as opened:
            if not rate > 0:
                raise InvalidArgument("a rate must be more than 0", "give items a second")
            limits = (drain, max_items, max_failures, idle_s, reconnect_s, rate)
            conditions = control.StopConditions(opened, *limits)
            return loop.Worker(
                conditions, handler, concurrency, batch, stop, stop_s, on_event
            ).run()

    def lengths(self) -> Counts:
        """The lengths of the queue's structures at one instant; everything else is None."""
        return counting.lengths(self)

    def counts(self, *, deep: bool = False) -> Counts:
        """Counts by state; if `deep`, also of the states that need a walk over the whole queue."""
        return counting.counts(self, deep=deep)

    def state(self, item_id: bytes | str) -> State:
        """The state of one ID."""
        return lookup.state(self, item_id)

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
        """The selected items of the structures of a source, read in pages.

        They come in the order in which they are or were leased: next, or longest leased, first;
        from the `tail`, newest first. `offset` of them are skipped, and no more than `limit` given.
        Sizes and previews are read if that does not reset idle times; with `data`, all of the data;
        if `bare`, only IDs and states.
        """
        return listing.items(
            self, source, selection, limit=limit, offset=offset, tail=tail, data=data, bare=bare
        )

    def result(
        self, item_id: bytes | str, *, wait: bool = False, timeout_s: float = inf
    ) -> "ResultLookup":
        """Read the result of an ID, and the state of its item; `WrongType` for another type of key.

        With `wait`, it first waits for `timeout_s` seconds until no item has this ID, even if an
        earlier item left a result; items that fall due meanwhile are promoted.
        """
        timeout_s = checked_s("a timeout", timeout_s, may_be_endless=True)
        return results.result(self, item_id, wait=wait, timeout_s=timeout_s)

    def light_clean(
        self, *, grace_s: float = GRACE_S, bury_after: int | None = None, dry_run: bool = False
    ) -> "list[CleanAction]":
        """Return the items that dead workers left in processing, promote due ones, drop ghosts.

        It looks twice, `grace_s` seconds apart; a `dry_run` only reports what would be done. An
        item that was returned `bury_after` times, by cleans or after failed attempts, is buried;
        None for never. It waits for another clean of this queue. `ServerError.acknowledged` is the
        number of actions.
        """
        return self._clean(deep=False, grace_s=grace_s, bury_after=bury_after, dry_run=dry_run)

    def deep_clean(
        self, *, grace_s: float = GRACE_S, bury_after: int | None = None, dry_run: bool = False
    ) -> "list[CleanAction]":
        """Do what a light clean does, and repair orphans, duplicates and ghosts everywhere.

        The arguments are those of `light_clean`.
        """
        return self._clean(deep=True, grace_s=grace_s, bury_after=bury_after, dry_run=dry_run)

    def _clean(
        self, *, deep: bool, grace_s: float, bury_after: int | None, dry_run: bool
    ) -> "list[CleanAction]":
        grace_s = checked_s("a grace period", grace_s)
        batches = cleaning.clean(
            self, deep=deep, grace_s=grace_s, bury_after=bury_after, dry_run=dry_run
        )
        return [action for batch in batches for action in batch]

    def diagnose(
        self,
        *,
        codes: "Iterable[Code] | None" = None,
        fix: bool = False,
        grace_s: float = GRACE_S,
        dry_run: bool = False,
    ) -> "Diagnosis":
        """Find the problems with these `codes`, or all, and `fix` those that need no decision.

        If the first look saw one, a second follows `grace_s` seconds later. A `dry_run` changes
        nothing, and reports what would be done.
        """
        grace_s = checked_s("a grace period", grace_s)
        return doctor.diagnose(self, codes=codes, fix=fix, grace_s=grace_s, dry_run=dry_run)
