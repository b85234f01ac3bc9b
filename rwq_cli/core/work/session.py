"""The calls of a worker: how items are leased, renewed and ended. It has no threads."""

import os
import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import count, repeat
from math import inf
from operator import attrgetter
from typing import Any, NamedTuple

from rwq_cli.core.clock import LEASE_S, RESULT_TTL_S, lease_time_ms, result_time_ms
from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue, distinct_queues
from rwq_cli.core.items import lease
from rwq_cli.core.items.schedule import promote, release
from rwq_cli.core.server.patience import Cut
from rwq_cli.core.work.held import HeldJobs, batches_of, calls_for, taken_from
from rwq_cli.core.work.idle import WorkWaiter
from rwq_cli.core.work.job import Ended, ExchangeResult, Job, JobEnd, RetryPolicy

# A lease is renewed when this share of it is left.
_RENEW_AT = 2 / 3
# The shortest time between two renewals; shorter for leases of less than 6 s.
_RENEW_PAUSE_S = 1.0
# A renewal gets at least this time for its reply.
_REPLY_S_MIN = 0.5
# How many entries at the left end of processing are looked at for leases whose reply was lost; how
# long that takes at most on one node of a cluster; and for how long it is not tried again, in
# proportion to how long it took: other nodes may answer.
_DOUBTFUL_ENTRIES, _DOUBTFUL_PAGE = 10_000, 500
_DOUBTFUL_S, _DOUBTFUL_PAUSE = 2.0, 4.0


class _Remainder(NamedTuple):
    """What a round trip leaves to do: ends to be sent again, queues that may have items to lease,
    and one with due items that only `promote` can judge."""

    endings: Sequence[Ended] = ()
    queues: Sequence[Queue] = ()
    unsure: Queue | None = None


class WorkSession:
    """Leases items and ends them, one call at a time; any thread may renew the leases."""

    def __init__(
        self,
        queues: Sequence[Queue],
        *,
        lease_s: float = LEASE_S,
        policy: RetryPolicy | None = None,
        fair: bool = False,
        result_ttl_s: float = RESULT_TTL_S,
        rng: random.Random | None = None,
    ) -> None:
        distinct = distinct_queues(queues)
        first = distinct[0]
        # Ends the calls that are under way, and all later ones.
        self.cut = Cut()
        # On a cluster, the connection that sends each call to its node.
        self._connection, self.clock = copy(first.connection.root), first.clock
        self._connection.cut = self.cut
        self._queues = [queue.on(self._connection) for queue in distinct]
        self._only = self._queues[0] if len(self._queues) == 1 else None
        self.lease_s, self._lease_ms = lease_s, lease_time_ms(lease_s)
        self._is_fair = fair
        # Checked before anything is leased.
        result_time_ms(result_ttl_s)
        self._result_ttl_s = result_ttl_s
        self._random = rng or random.Random()
        # What the holders of all leases begin with.
        self.name = first.holder + b"+" + os.urandom(4).hex().encode()
        self._exchanges = count(1)
        self.held = HeldJobs(policy or RetryPolicy(), self.clock, self._random)
        self.waiter = WorkWaiter(self._queues)
        # Those of the last call of any thread, and of the last exchange; and since when calls fail.
        self._error: ServerError | None = None
        self._exchange_error: ServerError | None = None
        self._error_since_s = inf
        self._renewed_s = -inf
        # The holders of calls that may have leased items without a reply, their queues, and when
        # to look for these items.
        self._doubtful: dict[bytes, tuple[Queue, float]] = {}
        self._new_jobs: list[Job] = []

    @property
    def unsettled(self) -> int:
        """How many ended jobs, and calls that may have leased items, are not acknowledged yet."""
        return len(self.held.unsettled) + len(self._doubtful)

    def exchange(self, ends: Iterable[tuple[Job, JobEnd]] = (), *, take: int = 0) -> ExchangeResult:
        """End jobs, and take up to so many new ones of one queue in the same round trip.

        With several queues, taking needs a second one. Whatever an earlier exchange has left
        unsettled is settled, too. A `ServerError` is not raised: it is the `error`.
        """
        request = None
        if take > 0:
            holder = self.name + b".%d" % next(self._exchanges)
            request = lease.LeaseRequest(take, holder, self._lease_ms)
        self._new_jobs, failures = [], list[ServerError]()
        self.held.end(ends)
        try:
            if self._doubtful:
                # The ends first: the node whose reply was lost may be gone.
                self._settle()
                failures += self._put_back_doubtful()
            if not failures or self._only is None:
                self._settle(request)
            # Of what was leased, the attempts may have been used up.
            if not failures:
                self._settle()
        except ServerError as failure:
            failures.append(failure)
        self._exchange_error = failures[0] if failures else None
        if failures:
            self._note_answer(failures[0])
            self.held.note_refused()
        ended, lost = taken_from(self.held.ended), taken_from(self.held.lost)
        return ExchangeResult(self._new_jobs, ended, lost, self._exchange_error)

    @property
    def outage(self) -> ServerError | None:
        """Why the last call failed, or the end of a job is refused while other calls succeed."""
        if self._error is None and self._exchange_error is not None:
            return self._exchange_error if self.held.refused_since_s < inf else None
        return self._error

    @property
    def outage_since_s(self) -> float:
        """Since when calls have failed, or the end of a job was refused, on the clock; inf if
        neither is so."""
        return min(self._error_since_s, self.held.refused_since_s)

    def _settle(self, request: lease.LeaseRequest | None = None) -> None:
        """End what is unsettled, and take new jobs if there is a request, in one round trip, and do
        in others what that leaves to do; raises a refusal when all else is done."""
        refusals: list[ServerError] = []
        endings, queues, unsure = self._round_trip(self.held.unsettled, request, refusals)
        while endings:
            endings, *_ = self._round_trip(endings, None, refusals)
        if unsure is not None:
            deque(promote(unsure), maxlen=0)
        if request is not None:
            self._take(request, queues)
        if refusals:
            raise refusals[0]

    def _round_trip(
        self,
        endings: Sequence[Ended],
        request: lease.LeaseRequest | None,
        refusals: list[ServerError],
    ) -> _Remainder:
        """End jobs, and take new ones of the only queue, or look which queues have any."""
        # Nearly always, the call that takes items also completes the one that was worked on.
        is_joined = bool(request and self._only and len(endings) == 1 and endings[0].step.is_plain)
        done = endings[0] if is_joined else None
        calls = [] if is_joined else calls_for(endings, self._result_ttl_s)
        commands = [command for command, _ in calls]
        if request is not None and self._only is not None:
            item = (done.job.item_id, done.job.holder) if done else ()
            commands.append(lease.first_lease(self._only, request, *item))
        elif request is not None:
            commands += self.waiter.look_commands()
        if not commands:
            return _Remainder()
        sent_s = self.clock.monotonic()
        try:
            replies = self._connection.call_all(commands, return_errors=True)
        except BaseException as error:
            self._doubt(error, endings, request, self._only)
            raise
        errors = [reply for reply in replies if isinstance(reply, ServerError)]
        refusals += errors
        if not errors:
            self._note_answer()
        again: list[Ended] = []
        for (_, alike), reply in zip(calls, replies, strict=False):
            if isinstance(reply, ServerError):
                # One node of a cluster may have been lost.
                self._doubt(reply, alike)
            else:
                again += self.held.note_reply(alike, reply)
        if request is None:
            return _Remainder(again)
        # Even if another call was refused: what was leased is held.
        if self._only is not None:
            remainder = self._note_lease(self._only, request, done, replies[-1], sent_s)
            return remainder._replace(endings=[*again, *remainder.endings])
        ready = self.waiter.ready_queues(replies[len(calls) :])
        if self._is_fair:
            self._random.shuffle(ready)
        return _Remainder(again, ready)

    def _note_lease(
        self,
        queue: Queue,
        request: lease.LeaseRequest,
        done: Ended | None,
        reply: Any,
        sent_s: float,
    ) -> _Remainder:
        """Hold what a call has leased, and settle what it has completed."""
        endings = [] if done is None else [done]
        if isinstance(reply, ServerError):
            self._doubt(reply, endings, request, queue)
            return _Remainder([] if reply.in_doubt else endings)
        batch = lease.LeasedBatch.of(queue, reply)
        if done is not None and batch.has_completed:
            self.held.settle(done)
            endings = []
        if not batch.ids and (batch.examined or batch.promoted):
            # Only ghosts and stale entries so far.
            return _Remainder(endings, [queue])
        self.waiter.due_in_s = batch.due_in_s
        self._add(request.holder, batch, sent_s)
        return _Remainder(endings, unsure=queue if batch.promoted < 0 else None)

    def _doubt(
        self,
        error: BaseException,
        endings: Iterable[Ended],
        request: lease.LeaseRequest | None = None,
        queue: Queue | None = None,
    ) -> None:
        """Note that a failed call may have done what it was to do."""
        if isinstance(error, ServerError) and not error.in_doubt:
            return
        for ended in endings:
            ended.in_doubt = True
        if request is not None and queue is not None:
            self._doubtful[request.holder] = queue, -inf

    def _note_answer(self, error: ServerError | None = None) -> None:
        if error is None:
            self._error_since_s = inf
        elif self._error is None:
            self._error_since_s = self.clock.monotonic()
        self._error = error

    def _take(self, request: lease.LeaseRequest, queues: Sequence[Queue]) -> None:
        """Take items of the first queue that has any."""
        for queue in queues:
            sent_s = self.clock.monotonic()
            try:
                batch = lease.lease_from_first([queue], request)
            except BaseException as error:
                self._doubt(error, (), request, queue)
                raise
            if batch.ids:
                self._add(request.holder, batch, sent_s)
                return

    def _add(self, holder: bytes, batch: lease.LeasedBatch, sent_s: float) -> None:
        self.waiter.was_fruitless &= not batch.ids
        # Counted from when it was sent, so that ours ends before the server's.
        end_s, is_last = sent_s + self.lease_s, self.held.policy.is_last
        counts = batch.returns or repeat(None, len(batch.ids))
        self._new_jobs += self.held.add(
            Job(batch.queue, item_id, data, holder, times or 0, is_last((times or 0) + 1), end_s)
            for item_id, data, times in zip(batch.ids, batch.data, counts, strict=True)
        )

    def _put_back_doubtful(self) -> Iterator[ServerError]:
        """Release items that were leased by calls whose replies were lost; yields what fails."""
        for holder, (queue, again_s) in list(self._doubtful.items()):
            began_s = self.clock.monotonic()
            if began_s < again_s and self._error is not None:
                yield self._error
                continue
            limit_s = _DOUBTFUL_S if self._connection.is_cluster else inf
            try:
                connection = self._connection.within(limit_s, is_patient=False)
                self._put_back(holder, queue.on(connection))
            except ServerError as error:
                now_s = self.clock.monotonic()
                again_s = now_s + _DOUBTFUL_PAUSE * (now_s - began_s)
                self._doubtful[holder] = queue, again_s
                yield error

    def _put_back(self, holder: bytes, queue: Queue) -> None:
        """Release what a call with this holder has leased.

        Leases push onto the left end of processing, so they are near it, however long the list is.
        If too many others were leased since, a clean returns them when their leases have ended.
        """
        held_ids = {job.item_id for job in self.held.all if job.holder == holder}
        doubtful_ids: list[bytes] = []
        for first in range(0, _DOUBTFUL_ENTRIES, _DOUBTFUL_PAGE):
            last = first + _DOUBTFUL_PAGE - 1
            page = queue.call("LRANGE", queue.keys.processing, first, last)
            holders = queue.call("MGET", *map(queue.keys.lease, page)) if page else ()
            leased_ids = (i for i, value in zip(page, holders, strict=True) if value == holder)
            doubtful_ids += [item_id for item_id in leased_ids if item_id not in held_ids]
            if len(page) < _DOUBTFUL_PAGE:
                break
        own_handle = Queue(queue.connection, queue.name, holder=holder, clock=queue.clock)
        # Those that were leased last are first in the list.
        deque(
            release(own_handle, doubtful_ids[::-1], own_only=True, front=True, grace_s=0.0),
            maxlen=0,
        )
        self._doubtful.pop(holder, None)

    @property
    def next_renewal_s(self) -> float:
        """Seconds until `renew` is due: when a third of a lease has passed; inf without jobs."""
        first_s = min((job.deadline_s for job in self.held.all), default=inf)
        due_s = first_s - self.lease_s * _RENEW_AT
        pause_s = min(_RENEW_PAUSE_S, self.lease_s / 6)
        return max(0.0, max(due_s, self._renewed_s + pause_s) - self.clock.monotonic())

    def renew(self) -> list[Job]:
        """Renew all leases in one round trip; returns the jobs found lost, each once. A
        `ServerError` is not raised: it is the `error`."""
        jobs = self.held.all
        batches = [*batches_of(jobs, attrgetter("queue"))]
        args: dict[str, Any] = {"lease_ms": self._lease_ms, "has_owners": True}
        calls = [b[0].handle.script("touch", *_with_holders(b), **args) for b in batches]
        sent_s = self.clock.monotonic()
        left_s = min((job.deadline_s - sent_s for job in jobs), default=0.0)
        # A second try, on a new connection, may be needed: this one may be dead.
        limit_s = max(_REPLY_S_MIN, left_s / 2)
        try:
            connection = self._connection.within(limit_s, is_patient=False)
            replies = connection.call_all(calls, return_errors=True)
        except ServerError as failure:
            replies = [failure] * len(batches)
        refusals = [reply for reply in replies if isinstance(reply, ServerError)]
        for batch, reply in zip(batches, replies, strict=True):
            if not isinstance(reply, ServerError):
                self.held.note_renewal(batch, reply, sent_s + self.lease_s)
        self._renewed_s = self.clock.monotonic()
        if refusals:
            self.held.lose_ended(jobs, self._renewed_s)
        if batches:
            self._note_answer(refusals[0] if refusals else None)
        return taken_from(self.held.lost)

    def forgive(self) -> None:
        """Have a clean not count the return of what is held: this worker may be killed before it
        stops. A count that is 0 stays, so that an item is counted once at most, however often its
        workers are stopped. Each job is forgiven once, even if the reply is lost."""
        # Leases are renewed by the thread that waits for this.
        connection = self._connection.within(_REPLY_S_MIN, is_patient=False)
        held = [job for job in self.held.all if not job.is_forgiven]
        for batch in batches_of(held, attrgetter("queue")):
            try:
                connection.call_all([batch[0].handle.script("forgive", *_with_holders(batch))])
            except ServerError as error:
                if not error.in_doubt:
                    raise
            for job in batch:
                job.is_forgiven = True

    def wait_for_work(self, timeout_s: float) -> bool:
        """See `WorkWaiter.wait`."""
        try:
            may_have_work = self.waiter.wait(timeout_s)
            if may_have_work:
                self._note_answer()
            return may_have_work
        except ServerError as error:
            self._note_answer(error)
            raise

    def __enter__(self) -> "WorkSession":
        return self

    def __exit__(self, *_: object) -> None:
        # Jobs that are held stay leased until their leases end.
        self.waiter.close()


def _with_holders(jobs: Iterable[Job]) -> Iterable[bytes]:
    return (word for job in jobs for word in (job.item_id, job.holder))
