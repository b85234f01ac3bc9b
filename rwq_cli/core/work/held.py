"""What a worker holds: its jobs until the server has settled their ends. It sends nothing.

How ends are sent to the server, and what its replies mean.
"""

import random
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from math import inf
from threading import RLock
from typing import Any, TypeVar

from rwq_cli.core.batches import in_batches
from rwq_cli.core.clock import Clock
from rwq_cli.core.inspect.results import ResultStatus
from rwq_cli.core.items.complete import ResultOptions, completing_args
from rwq_cli.core.items.schedule import put_args
from rwq_cli.core.model import Outcome, OutcomeBatch, Status
from rwq_cli.core.server.commands import Command
from rwq_cli.core.state.expected import ANY
from rwq_cli.core.state.located import Located
from rwq_cli.core.work.job import Ended, Fate, GiveUp, Job, JobEnd, Loss, RetryPolicy

# A retry falls due at most this much later than its delay says: the delay is rounded to ms, and the
# due times of a call are spread over less than another ms.
_DUE_SPREAD_S = 0.002
# Jobs that are ended or renewed in one call.
_CALL_ITEMS = 250
_LOST = (Status.ELSEWHERE, Status.WRONG_TYPE, Status.MISSING, Status.NOT_OWNER)
# All IDs are in processing, and have no conditions but their holder.
_PLACE = {**Located((), "leased").args(), **ANY.args()}

_T = TypeVar("_T")


def command_of(endings: Sequence[Ended], result_ttl_s: float) -> Command:
    """The call that ends jobs of one lease in the same way; it acts only while its holder has it.

    A worker that was told to stop has taken one off the counts of what it held, in case it is
    killed. So a count is not raised by a failure, but set: its reply may have been lost as well.
    """
    job, step = endings[0].job, endings[0].step
    ids = [ended.job.item_id for ended in endings]
    if step.completes:
        options = None
        if not step.is_plain:
            options = ResultOptions(step.data, ResultStatus(step.fate.value), result_ttl_s)
        args = completing_args(options, (job.holder,))
        return job.handle.script("complete", *ids, **_PLACE, **args)
    to, delay_ms, reason = "front" if step.front else "main", None, None
    if step.fate is Fate.RETRY:
        to, delay_ms = "delayed", round(step.delay_s * 1000)
    elif step.fate is Fate.BURIED:
        to, reason = "buried", step.data
    counts = [ended.job.returns + step.counted for ended in endings]
    args = put_args(
        *(to, job.holder, delay_ms, reason), counts if any(counts) else (), own_only=True
    )
    return job.handle.script("put", *ids, **_PLACE, **args)


def batches_of(items: Iterable[_T], kind: Callable[[_T], Hashable]) -> Iterator[list[_T]]:
    """The items in batches of one kind: as many as are ended, or renewed, in one call."""
    alike: dict[Hashable, list[_T]] = {}
    for item in items:
        alike.setdefault(kind(item), []).append(item)
    for group in alike.values():
        yield from in_batches(group, items_max=_CALL_ITEMS)


def taken_from(queue: deque[_T]) -> list[_T]:
    """All that is in a queue by now; other threads may append to it, and take from it."""
    entries: list[_T] = []
    while queue:
        try:
            entries.append(queue.popleft())
        except IndexError:
            break
    return entries


def calls_for(
    endings: Iterable[Ended], result_ttl_s: float
) -> list[tuple[Command, Sequence[Ended]]]:
    """The calls for some ends, and the ends of each; jobs of one lease that end alike share one.

    Their IDs differ, for no call leases an item twice.
    """
    batches = batches_of(endings, lambda ended: (ended.job.queue, ended.job.holder, ended.step))
    calls: list[tuple[Command, Sequence[Ended]]] = [
        (command_of(batch, result_ttl_s), batch) for batch in batches
    ]
    # Each pushes its items in front of those of the call before it.
    fronts = [call for call in calls if call[1][0].step.front]
    return [call for call in calls if call not in fronts] + fronts[::-1] if fronts else calls


def loss_at(ended: Ended, outcome: Outcome, now_s: float) -> Loss | None:
    """Why a job was lost, from the reply to its end; None if that did, or has done, what it was to.

    An earlier call whose reply was lost may have done it; once the lease has ended, others may.
    """
    status = outcome.status
    if status not in _LOST:
        return None
    # Completing it would have deleted the data.
    looks_done = status is Status.MISSING or (
        status is Status.NOT_OWNER and not ended.step.completes
    )
    if not (ended.in_doubt and looks_done):
        return Loss.of(outcome)
    return Loss.UNREACHABLE if now_s >= ended.job.deadline_s else None


class HeldJobs:
    """The jobs of a worker, for all its threads: each until its end is settled, or it is lost."""

    def __init__(self, policy: RetryPolicy, clock: Clock, rng: random.Random) -> None:
        self.policy, self._clock, self._random = policy, clock, rng
        # When all retries are due, on the clock; -inf for none.
        self.last_retry_s = -inf
        self._lock = RLock()
        # By queue and ID, in the order in which they were leased.
        self._held: dict[tuple[bytes, bytes], Job] = {}
        self._unsettled: dict[Job, Ended] = {}
        # To be reported: jobs whose ends were settled, and those found lost while they run.
        self.ended: deque[Ended] = deque()
        self.lost: deque[Job] = deque()

    @property
    def all(self) -> list[Job]:
        with self._lock:
            return list(self._held.values())

    @property
    def running(self) -> list[Job]:
        with self._lock:
            return [job for job in self._held.values() if job not in self._unsettled]

    @property
    def unsettled(self) -> list[Ended]:
        with self._lock:
            return list(self._unsettled.values())

    @property
    def refused_since_s(self) -> float:
        """Since when the oldest end is refused that is not settled, on the clock; inf for none."""
        return min((ended.refused_since_s for ended in self.unsettled), default=inf)

    def note_refused(self) -> None:
        """Note that what is unsettled was sent, or was to be, in vain."""
        now_s = self._clock.monotonic()
        for ended in self.unsettled:
            ended.refused_since_s = min(ended.refused_since_s, now_s)

    def add(self, jobs: Iterable[Job]) -> list[Job]:
        """Hold these; returns those to run. Those whose attempts are used up have ended."""
        to_run: list[Job] = []
        with self._lock:
            for job in jobs:
                # The lease of an earlier job has ended, and its item was returned.
                if (earlier := self._held.get(job.key)) is not None:
                    self._lose(earlier, Loss.TAKEN)
                    self._held.pop(job.key, None)
                self._held[job.key] = job
                if self.policy.is_exhausted(job.attempt):
                    self.end([(job, None)])
                else:
                    to_run.append(job)
        return to_run

    def end(self, ends: Iterable[tuple[Job, JobEnd | None]]) -> None:
        """Note how jobs have ended; what is still held is unsettled then."""
        with self._lock:
            for job, end in ends:
                if job in self._unsettled:
                    continue
                step = self.policy.step(end, job.attempt, self._random.random())
                if self._held.get(job.key) is job:
                    self._unsettled[job] = Ended(job, end, step, step.fate)
                else:
                    self.ended.append(Ended(job, end, step, Fate.LOST))

    def note_reply(self, endings: Sequence[Ended], reply: Sequence[Any]) -> list[Ended]:
        """Note the reply to a call that ends jobs; returns the ends to send again."""
        again: list[Ended] = []
        outcomes = OutcomeBatch.from_reply([ended.job.item_id for ended in endings], reply)
        now_s = self._clock.monotonic()
        with self._lock:
            for ended, outcome in zip(endings, outcomes, strict=True):
                job, step = ended.job, ended.step
                if outcome.status is Status.WRONG_TYPE and step.completes and not step.is_plain:
                    # Its result cannot be kept.
                    end = GiveUp(b"%b has the wrong type" % job.handle.keys.result(job.item_id))
                    step = self.policy.step(end, job.attempt, 0.0)
                    self._unsettled[job] = buried = Ended(job, end, step, step.fate)
                    again.append(buried)
                elif outcome.status is Status.ELSEWHERE and ended is not endings[0]:
                    # In a long list, a call looks for some of the IDs only, and for the first.
                    again.append(ended)
                else:
                    loss = loss_at(ended, outcome, now_s)
                    if loss is None and step.fate is Fate.RETRY:
                        due_s = now_s + step.delay_s + _DUE_SPREAD_S
                        self.last_retry_s = max(self.last_retry_s, due_s)
                    self.settle(ended, loss)
        return again

    def settle(self, ended: Ended, loss: Loss | None = None) -> None:
        job = ended.job
        with self._lock:
            if loss is not None:
                ended.fate, job.loss = Fate.LOST, job.loss or loss
            self.ended.append(ended)
            self._unsettled.pop(job, None)
            self._drop(job)

    def note_renewal(self, jobs: Sequence[Job], reply: Sequence[Any], deadline_s: float) -> None:
        outcomes = OutcomeBatch.from_reply([job.item_id for job in jobs], reply)
        with self._lock:
            for job, outcome in zip(jobs, outcomes, strict=True):
                if outcome.status is Status.TOUCHED:
                    job.deadline_s = deadline_s
                else:
                    self._lose(job, Loss.of(outcome))

    def lose_ended(self, jobs: Iterable[Job], now_s: float) -> None:
        """Note those whose leases have ended by our clock: the server did not answer."""
        with self._lock:
            for job in jobs:
                if job.deadline_s <= now_s:
                    self._lose(job, Loss.UNREACHABLE)

    def _lose(self, job: Job, loss: Loss) -> None:
        # The call that ends a finished job finds out itself.
        if job not in self._unsettled and self._drop(job):
            job.loss = loss
            self.lost.append(job)

    def abandon(self) -> list[Ended]:
        """Hold nothing any more; returns the ends that were never acknowledged, as lost."""
        with self._lock:
            unsettled = [*self._unsettled.values()]
            self._unsettled.clear()
            self._held.clear()
        for ended in unsettled:
            ended.fate, ended.job.loss = Fate.LOST, Loss.UNACKNOWLEDGED
        return unsettled

    def _drop(self, job: Job) -> bool:
        """Hold a job no longer; False if another lease has its place, or none."""
        if is_held := self._held.get(job.key) is job:
            del self._held[job.key]
        return is_held
