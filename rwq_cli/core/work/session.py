"""Jobs: leasing, renewing and finishing items for a worker, without threads or subprocesses."""

import os
import random
from collections.abc import Iterable, Sequence
from itertools import count, repeat
from math import inf
from threading import Lock
from types import TracebackType
from typing import Any, NamedTuple

from rwq_cli.core.batches import in_batches
from rwq_cli.core.clock import LEASE_S, RESULT_TTL_S, lease_time_ms, result_time_ms
from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue, distinct_queues
from rwq_cli.core.items.lease import (
    LeasedBatch,
    LeaseRequest,
    batch_of,
    first_lease,
    lease_from_first,
)
from rwq_cli.core.model import OutcomeBatch, Status
from rwq_cli.core.server.commands import Command
from rwq_cli.core.state.probe import parse_returns
from rwq_cli.core.work.endings import JOBS_PER_CALL, Call, Ending, calls_for, loss_of, was_done
from rwq_cli.core.work.idle import WorkWaiter
from rwq_cli.core.work.job import Ended, ExchangeResult, Job, Loss
from rwq_cli.core.work.policy import Fate, GiveUp, JobEnd, PutBack, RetryPolicy

# A lease is renewed when this share of it is left.
_RENEW_AT = 2 / 3
# The shortest time between two renewals; shorter for leases of less than 6 s.
_RENEW_PAUSE_S = 1.0
# A renewal gets at least this time for its reply.
_REPLY_S_MIN = 0.5
# How many entries at the left end of processing are looked at for leases whose reply was lost.
_DOUBTFUL_ENTRIES, _DOUBTFUL_PAGE = 10_000, 500
# A retry falls due at most this much later than its delay says: the delay is rounded to ms, and the
# due times of a call are spread over less than another ms.
_DUE_SPREAD_S = 0.002


class _Take(NamedTuple):
    """The part of an exchange that takes items.

    Attributes:
        request: How many items to lease, and how.
        jobs: The jobs that were taken so far.
    """

    request: LeaseRequest
    jobs: list[Job]


class WorkSession:
    """Leases items from queues, renews their leases, and finishes them.

    It starts no threads, and several threads may use it. An item is completed, retried, buried or
    released only while this session holds its lease, in one atomic step. Each exchange leases with
    a holder of its own, so that an item which was lost and then leased again is not mistaken for
    the first job. Ending a job costs a scan of the processing list, and none of the main list; so
    the longer that list is, the fewer jobs end in one call.

    If the server is gone, that is reported; no job is lost before its lease has ended.

    Args:
        queues: The queues in order of preference, on one connection; duplicates are ignored.
        lease_s: How long a lease lasts, seconds.
        policy: When failed jobs are tried again; None for the default.
        fair: Try the queues in random order instead.
        result_ttl_s: How long results are kept, seconds.
        rng: The source of random numbers; None for the system's.

    Attributes:
        policy: See above.
        clock: The clock of the queues.
        name: What the holders of all leases begin with.
        error: The error of the last call; None if it succeeded.
        failing_since_s: When the failures since the last success began, on the clock of the queues.

    Raises:
        InvalidArgument: There is no queue, they are not on one connection, or a lease or result
            would last less than 1 ms.
    """

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
        self._queues = distinct_queues(queues)
        first = self._queues[0]
        self.lease_s, self._lease_ms = lease_s, lease_time_ms(lease_s)
        self.policy = policy or RetryPolicy()
        self._is_fair = fair
        # Checked here, before anything is leased.
        result_time_ms(result_ttl_s)
        self._result_ttl_s = result_ttl_s
        self._random = rng or random.Random()
        # On a cluster, the connection that sends each call to its node.
        self._connection, self.clock = first.connection.root, first.clock
        self.name = first.holder + b"+" + os.urandom(4).hex().encode()
        self._exchanges = count(1)
        self.error: ServerError | None = None
        self.failing_since_s = 0.0
        # Protects what follows; no call is sent while it is held.
        self._lock = Lock()
        # By queue and ID, in the order in which they were leased.
        self._held: dict[tuple[bytes, bytes], Job] = {}
        self._endings: dict[Job, Ending] = {}
        # The endings that no call is sending now.
        self._unsent: list[Ending] = []
        self._settled: list[Ended] = []
        self._lost: list[Job] = []
        # The holders of exchanges that may have leased items without a reply, and the queues.
        self._doubtful: dict[bytes, Queue] = {}
        self._renewed_s = -inf
        self._last_retry_s = -inf
        self._waiter = WorkWaiter(self._queues)

    @property
    def jobs(self) -> list[Job]:
        """The jobs that are held and have not ended."""
        with self._lock:
            return [job for job in self._held.values() if job not in self._endings]

    @property
    def unsettled(self) -> int:
        """How many ended jobs, and calls that may have leased items, are not acknowledged yet."""
        return len(self._endings) + len(self._doubtful)

    @property
    def last_retry_s(self) -> float:
        """When all retries of this session are due, on the clock of the queues; -inf for none."""
        return self._last_retry_s

    def exchange(self, ends: Iterable[tuple[Job, JobEnd]] = (), *, take: int = 0) -> ExchangeResult:
        """Finish jobs, and take new ones in the same round trip.

        All that are taken are of one queue; with several queues, that needs a second round trip. An
        item whose attempts are used up is given up without another attempt, and is among `ended`.

        Ends that the server did not acknowledge are sent again by the next exchange. That is safe
        if only the reply was lost: a script acts only under the lease, which the first call ended.
        Items that an unacknowledged call may have leased are put back by the next exchange.

        Args:
            ends: Jobs of this session, and how they ended.
            take: How many items to take at most.

        Returns:
            What was taken, settled and lost, even if a call failed: its `ServerError` is returned
            as `error`, and not raised.
        """
        sending = self._begin(ends)
        taking = _Take(self._request(take), []) if take > 0 else None
        was_sent = bool(sending or taking or self._doubtful)
        error: ServerError | None = None
        try:
            if self._doubtful:
                self._put_back_doubtful()
            self._send(sending, taking)
            if exhausted := self._begin(()):
                sending += exhausted
                self._send(exhausted, None)
        except ServerError as failure:
            error = failure
            self._note(failure)
        finally:
            with self._lock:
                self._unsent += [each for each in sending if each.job in self._endings]
        with self._lock:
            ended, self._settled = self._settled, []
            lost, self._lost = self._lost, []
        return ExchangeResult(
            taking.jobs if taking is not None else [], ended, lost, error, was_sent
        )

    def _begin(self, ends: Iterable[tuple[Job, JobEnd]]) -> list[Ending]:
        """Note how jobs ended; return the endings to send."""
        with self._lock:
            for job, end in ends:
                self._note_end(job, end)
            sending, self._unsent = self._unsent, []
        return sending

    def _note_end(self, job: Job, end: JobEnd | None) -> None:
        step = self.policy.step(end, job.attempt, self._random.random())
        if not self._is_held(job):
            self._settled.append(Ended(job, end, Fate.LOST, step))
        elif job not in self._endings:
            self._endings[job] = ending = Ending(job, end, step)
            self._unsent.append(ending)

    def _request(self, take: int) -> LeaseRequest:
        holder = self.name + b".%d" % next(self._exchanges)
        return LeaseRequest(take, holder, self._lease_ms)

    def _send(self, endings: Sequence[Ending], taking: _Take | None) -> None:
        """Send the calls for some endings, and the first calls that take items."""
        calls = calls_for(endings, self._is_held, self._result_ttl_s)
        commands = [call.command for call in calls]
        if taking is not None and len(self._queues) == 1:
            commands.append(first_lease(self._queues[0], taking.request))
        elif taking is not None:
            commands += self._waiter.look_commands()
        if not commands:
            return
        sent_s = self.clock.monotonic()
        try:
            replies = self._connection.call_all(commands, return_errors=True)
        except BaseException as error:
            if not isinstance(error, ServerError) or error.in_doubt:
                for ending in endings:
                    ending.in_doubt = True
            if taking is not None and len(self._queues) == 1:
                self._note_doubt(taking, self._queues[0], error)
            raise
        again: list[Ending] = []
        for call, reply in zip(calls, replies, strict=False):
            if not isinstance(reply, ServerError):
                again += self._settle(call, reply)
            elif reply.in_doubt:
                # One node of a cluster was lost.
                for ending in call.endings:
                    ending.in_doubt = True
        refusals = [reply for reply in replies if isinstance(reply, ServerError)]
        if not refusals:
            self._note(None)
        try:
            if taking is not None:
                # Even if another call was refused: what was leased is held.
                self._take(taking, replies[len(calls) :], sent_s)
        finally:
            if again:
                self._send(again, None)
        if refusals:
            raise refusals[0]

    def _give_up(self, ending: Ending) -> bool:
        """Prepare to bury an item that cannot be completed because its result cannot be kept.

        Returns False if no result was to be kept.
        """
        fate, result = ending.step.fate, ending.step.data
        if not (fate is Fate.REJECTED or (fate is Fate.COMPLETED and result is not None)):
            return False
        key = ending.job.handle.keys.result(ending.job.item_id)
        ending.end = GiveUp(b"%b has the wrong type" % key)
        ending.step = self.policy.step(ending.end, ending.job.attempt, 0.0)
        return True

    def _note_doubt(self, taking: _Take, queue: Queue, error: BaseException) -> None:
        """Note a failed call that may have leased items of a queue."""
        if not isinstance(error, ServerError) or error.in_doubt:
            self._doubtful[taking.request.holder] = queue

    def _note(self, error: ServerError | None) -> None:
        """Note how a call went."""
        if error is not None and self.error is None:
            self.failing_since_s = self.clock.monotonic()
        self.error = error

    # Ending jobs.

    def _settle(self, call: Call, reply: Sequence[Any]) -> list[Ending]:
        """Note the reply to a call; returns the endings to send again."""
        again: list[Ending] = []
        outcomes = OutcomeBatch.from_reply([each.job.item_id for each in call.endings], reply)
        with self._lock:
            for ending, outcome in zip(call.endings, outcomes, strict=True):
                job, step = ending.job, ending.step
                # In a long list, a call looks for some of the IDs only, but always for the first.
                is_unlocated = outcome.status is Status.ELSEWHERE and ending is not call.endings[0]
                if is_unlocated or (outcome.status is Status.WRONG_TYPE and self._give_up(ending)):
                    again.append(ending)
                    continue
                loss = None if was_done(ending, outcome) else loss_of(outcome)
                if loss is not None:
                    job.loss = job.loss or loss
                elif step.fate is Fate.RETRY:
                    due_s = self.clock.monotonic() + step.delay_s + _DUE_SPREAD_S
                    self._last_retry_s = max(self._last_retry_s, due_s)
                fate = step.fate if loss is None else Fate.LOST
                self._settled.append(Ended(job, ending.end, fate, step))
                self._endings.pop(job, None)
                self._drop(job)
        return again

    def _drop(self, job: Job) -> None:
        """Stop holding a job."""
        if self._is_held(job):
            del self._held[job.queue, job.item_id]

    def _is_held(self, job: Job) -> bool:
        return self._held.get((job.queue, job.item_id)) is job

    # Taking items.

    def _take(self, taking: _Take, replies: Sequence[Any], sent_s: float) -> None:
        """Take items of the first queue that has any, given the replies to the first calls."""
        if len(self._queues) == 1:
            (queue,), (reply,) = self._queues, replies
            if isinstance(reply, ServerError):
                self._note_doubt(taking, queue, reply)
                return
            batch = batch_of(queue, reply)
            if batch.ids or not (reply[0] or reply[1]):
                self._waiter.due_in_s = reply[2] / 1000 if reply[2] >= 0 else inf
                self._add(queue, taking, batch, sent_s)
                return
            # Only ghosts and stale entries so far.
            ready = self._queues
        else:
            ready = self._waiter.ready_queues(replies)
        if self._is_fair:
            self._random.shuffle(ready)
        for queue in ready:
            sent_s = self.clock.monotonic()
            try:
                attempt = lease_from_first([queue], taking.request)
            except BaseException as error:
                self._note_doubt(taking, queue, error)
                raise
            if attempt.batch is not None:
                self._add(queue, taking, attempt.batch, sent_s)
                return

    def _add(self, queue: Queue, taking: _Take, batch: LeasedBatch, sent_s: float) -> None:
        """Add the jobs of a batch."""
        self._waiter.was_fruitless &= not batch.ids
        deadline_s = sent_s + self.lease_s
        counts = batch.returns or repeat(None, len(batch.ids))
        with self._lock:
            for item_id, data, digits in zip(batch.ids, batch.data, counts, strict=True):
                returns = parse_returns(digits) or 0
                is_last = self.policy.is_last(returns + 1)
                job = Job(queue, item_id, data, taking.request.holder, returns, is_last, deadline_s)
                # The lease of an earlier job has ended, and its item was returned.
                earlier = self._held.pop((queue.name, item_id), None)
                if earlier is not None and earlier not in self._endings:
                    earlier.loss = Loss.TAKEN
                    self._lost.append(earlier)
                self._held[queue.name, item_id] = job
                if self.policy.is_exhausted(job.attempt):
                    self._note_end(job, None)
                else:
                    taking.jobs.append(job)

    def _put_back_doubtful(self) -> None:
        """Release items that were leased by exchanges whose replies were lost.

        A lease pushes its item onto the left end of processing, so they are found near it, however
        long the list is. If so many others were leased since that they are not, a clean returns
        them when their leases have ended.
        """
        from rwq_cli.core.items.release import release

        for holder, queue in list(self._doubtful.items()):
            with self._lock:
                known = {job.item_id for job in self._held.values() if job.holder == holder}
            own = Queue(queue.connection, queue.name, holder=holder, clock=queue.clock)
            unknown: list[bytes] = []
            for first in range(0, _DOUBTFUL_ENTRIES, _DOUBTFUL_PAGE):
                page = queue.call(
                    "LRANGE", queue.keys.processing, first, first + _DOUBTFUL_PAGE - 1
                )
                holders = queue.call("MGET", *map(queue.keys.lease, page)) if page else ()
                pairs = zip(page, holders, strict=True)
                unknown += [i for i, value in pairs if value == holder and i not in known]
                if len(page) < _DOUBTFUL_PAGE:
                    break
            # Those that were leased last are first in the list.
            for _ in release(own, unknown[::-1], own_only=True, front=True, grace_s=0.0):
                pass
            self._doubtful.pop(holder, None)

    def release_all(self) -> ExchangeResult:
        """Put all jobs that have not ended back to the front of their queues, not counted."""
        return self.exchange([(job, PutBack(front=True)) for job in self.jobs])

    def abandon(self) -> list[Ended]:
        """Hold nothing any more; returns the jobs whose ends were never acknowledged, as lost."""
        with self._lock:
            left = [*self._endings.values()]
            self._endings.clear()
            self._held.clear()
            self._unsent.clear()
        for ending in left:
            ending.job.loss = Loss.UNREACHABLE
        return [Ended(each.job, each.end, Fate.LOST, each.step) for each in left]

    # Renewing leases.

    @property
    def next_renewal_s(self) -> float:
        """Seconds until `renew` is due: when a third of a lease has passed; inf without jobs."""
        with self._lock:
            first = next(iter(self._held.values()), None)
        if first is None:
            return inf
        due_s = first.deadline_s - self.lease_s * _RENEW_AT
        return max(0.0, max(due_s, self._renewed_s + self._pause_s) - self.clock.monotonic())

    @property
    def _pause_s(self) -> float:
        """The shortest time between two renewals."""
        return min(_RENEW_PAUSE_S, self.lease_s / 6)

    def renew(self) -> list[Job]:
        """Renew the leases of all jobs in one round trip.

        If the server does not answer, a job is lost only once its lease has ended by our clock.
        The error is not raised; see `error`.

        Returns:
            Running jobs that were found lost, each once.
        """
        with self._lock:
            jobs = list(self._held.values())
        by_queue: dict[bytes, list[Job]] = {}
        for job in jobs:
            by_queue.setdefault(job.queue, []).append(job)
        batches = [b for of in by_queue.values() for b in in_batches(of, items_max=JOBS_PER_CALL)]
        sent_s = self.clock.monotonic()
        left_s = min((job.deadline_s - sent_s for job in jobs), default=0.0)
        error: ServerError | None = None
        try:
            with self._connection.deadline(max(_REPLY_S_MIN, left_s), is_patient=False):
                replies = self._connection.call_all(map(self._touch, batches), return_errors=True)
        except ServerError as failure:
            replies = [failure] * len(batches)
        with self._lock:
            for batch, reply in zip(batches, replies, strict=True):
                if isinstance(reply, ServerError):
                    error = error or reply
                    continue
                outcomes = OutcomeBatch.from_reply([job.item_id for job in batch], reply)
                for job, outcome in zip(batch, outcomes, strict=True):
                    if outcome.status is Status.TOUCHED:
                        job.deadline_s = sent_s + self.lease_s
                    else:
                        self._lose(job, loss_of(outcome))
            self._renewed_s = now_s = self.clock.monotonic()
            for job in jobs if error is not None else ():
                if job.deadline_s <= now_s:
                    self._lose(job, Loss.UNREACHABLE)
            lost, self._lost = self._lost, []
        if batches:
            self._note(error)
        return lost

    def _touch(self, jobs: Sequence[Job]) -> Command:
        pairs = (word for job in jobs for word in (job.item_id, job.holder))
        return jobs[0].handle.script("touch", *pairs, lease_ms=self._lease_ms, has_owners=True)

    def forgive(self) -> None:
        """Have a clean not count the return of what is held: this worker was told to stop.

        It may be killed before its jobs have ended. A count that is 0 stays, so that an item is
        counted once at most, however often its workers are stopped.
        """
        with self._lock:
            jobs = list(self._held.values())
        for batch in in_batches(jobs, items_max=JOBS_PER_CALL):
            words = (word for job in batch for word in (job.item_id, job.holder))
            batch[0].handle.run("forgive", *words)

    def _lose(self, job: Job, loss: Loss) -> None:
        """Note that a running job is lost; the call that ends a finished job finds out itself."""
        if job.loss is None and job not in self._endings:
            if self._is_held(job):
                job.loss = loss
                self._lost.append(job)
            self._drop(job)

    # Waiting for work.

    def wait_for_work(self, timeout_s: float) -> bool:
        """Wait until a queue may have an item to lease; see `WorkWaiter.wait`."""
        try:
            found = self._waiter.wait(timeout_s)
        except ServerError as error:
            self._note(error)
            raise
        if found:
            self._note(None)
        return found

    def pause(self, seconds: float) -> None:
        """Wait, but not for work; `wake` ends it."""
        self._waiter.pause(seconds)

    def wake(self) -> None:
        """End the wait, or the next one; for other threads and signal handlers."""
        self._waiter.wake()

    def close(self) -> None:
        """Close what waits opened. Jobs that are held stay leased until their leases end."""
        self._waiter.close()

    def __enter__(self) -> "WorkSession":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
