"""The loop of a worker: as many threads as functions run at once; one of them at a time leads.

A thread that has nothing to run waits for its turn to lead, and then repeats one step until there
is something to run: note what has returned, and free the slots of that; exchange ends for new jobs,
if there are ends, or free slots that may take some; have these run, or wait, for work or for
something to return. It is over when nothing runs, nothing is unsettled, and nothing may be taken.
All that is decided, the leader decides: functions only return how they have ended. A thread beside
them that led alone would cost each short job of several at once half of its time more.

Whatever fails in one of them ends the worker.
"""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from heapq import heappop, heappush
from inspect import iscoroutinefunction
from math import inf
from threading import Event, Lock, Thread
from typing import Any

from rwq_cli.core.clock import LONGEST_S
from rwq_cli.core.errors import InvalidArgument, ServerError
from rwq_cli.core.work import control
from rwq_cli.core.work.held import taken_from
from rwq_cli.core.work.job import (
    Done,
    ExchangeResult,
    Failure,
    GiveUp,
    Handler,
    Job,
    JobEnd,
    PutBack,
)

# The pause after a call that failed.
RECONNECT_PAUSE_S = 1.0
# An idle worker checks this often whether it is to end, besides being woken.
_IDLE_S = 60.0
# How long the calling thread may take to notice a signal that came at a bad moment, and how late
# leases are renewed after the machine or this process was frozen.
_LOOK_S = 1.0
# How long the last call of a worker waits for one that hangs.
_LAST_CALL_S = 1.0
# How often a worker that waits for work looks whether a slot has rested.
_REST_LOOK_S = 0.1
# How often it is seen whether a worker that was told to stop waits in vain; and how long it waits
# for a reply if it holds nothing.
_STOP_LOOK_S, _LAST_REPLY_S = 0.1, 0.5


class Worker:
    """One session, the functions that run at once, and the threads; see `WorkQueue.work`."""

    def __init__(
        self,
        conditions: control.StopConditions,
        handler: Handler,
        concurrency: int,
        batch: int | None,
        stop: control.StopToken | None,
        stop_s: float,
        on_event: Callable[[control.WorkEvent], object] | None,
    ) -> None:
        if concurrency < 1 or (batch or 1) < 1:
            raise InvalidArgument(
                "the concurrency and the batch must be at least 1", "give 1 or more"
            )
        function: object = handler
        while isinstance(function, partial):
            function = function.func
        if not callable(function):
            raise TypeError(f"the handler is a function, not {type(function).__name__}")
        if iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__):
            raise TypeError("the handler is a coroutine function, which nothing would await")
        self._conditions, self.session = conditions, conditions.session
        self._clock = self.session.clock
        # It takes a list if there is a batch.
        self._handler: Callable[[Any], object] = handler
        self._concurrency, self._batch = concurrency, batch
        self._stop, self._stop_s = stop or control.StopToken(), stop_s
        self._listener = control.Listener(conditions, on_event)
        # Held by the leader, whose are: the slots that are free, a heap of those that rest, and
        # until when; how jobs have ended since the last exchange; and what is to run next.
        self._turn = Lock()
        self._free = deque(range(concurrency))
        self._resting: list[tuple[float, int]] = []
        self._ends: list[tuple[Job, JobEnd]] = []
        self._to_run: deque[tuple[int, list[Job]]] = deque()
        # What has returned; a slot is active until that is noted here.
        self._returned: deque[tuple[int, list[tuple[Job, JobEnd]]]] = deque()
        self._active: set[int] = set()
        self._returned_s = -inf
        # The leader waits, and what returns has to wake it.
        self._is_waiting = False
        # Nobody leads any more. Threads are not joined: after an interrupt of `join`, up to Python
        # 3.12 at least, one that lives looks dead.
        self._over = Event()
        self._failure: BaseException | None = None
        self._has_ended = Event()

    def run(self) -> control.WorkSummary:
        watchers = [
            Thread(target=self._renew, name="rwq-renewals", daemon=True),
            Thread(target=self._cut_last_calls, name="rwq-stop", daemon=True),
        ]
        for watcher in watchers:
            watcher.start()
        self._stop.sessions.add(self.session)
        try:
            if self._concurrency == 1:
                self._serve()
            else:
                self._serve_in_threads()
            if self._failure is not None:
                raise self._failure
        except BaseException:
            self._let_go()
            raise
        finally:
            self._stop.sessions.remove(self.session)
            self._has_ended.set()
            for watcher in watchers:
                watcher.join()
        return self._conditions.summary()

    def _let_go(self) -> None:
        """Put back what still runs after a failure, if no other call hangs, and hold nothing."""
        has_turn = self._turn.acquire(timeout=_LAST_CALL_S)
        try:
            # After that: the call that was under way may have settled some.
            self._collect()
            ends = [*self._ends, *((job, PutBack(front=True)) for job in self.session.held.running)]
            if has_turn:
                self._record(self.session.exchange(ends))
            else:
                self.session.held.end(ends)
        finally:
            if has_turn:
                self._turn.release()
        self._record(ExchangeResult(ended=self.session.held.abandon()))

    def _serve_in_threads(self) -> None:
        threads = [
            Thread(target=self._serve, name=f"rwq-work-{number + 1}", daemon=True)
            for number in range(self._concurrency)
        ]
        try:
            for thread in threads:
                thread.start()
            self._wait_until_over()
        except BaseException as error:
            self._fail(error)
            if threads[0].ident is not None:
                # A second interrupt does not wait.
                self._wait_until_over()
            raise
        finally:
            self._over.set()

    def _wait_until_over(self) -> None:
        while not self._over.wait(_LOOK_S):
            pass

    def _serve(self) -> None:
        while task := self._next():
            try:
                self._call(*task)
            except BaseException as error:
                self._fail(error)

    def _next(self) -> tuple[int, list[Job]] | None:
        """Lead until there is something to run; None once the worker is over."""
        with self._turn:
            while not (self._to_run or self._over.is_set()):
                try:
                    self._step()
                except BaseException as error:
                    self._fail(error)
                    # Else it goes on until all that runs has returned.
                    if not self._is_busy:
                        self._over.set()
            return self._to_run.popleft() if self._to_run else None

    def _step(self) -> None:
        self._collect()
        if self.session.cut.is_made:
            self._over.set()
            self.session.held.end(self._ends)
            self._record(ExchangeResult(ended=self.session.held.abandon()))
            return
        is_paused, pause_s = self._stop.is_paused, self._conditions.pause_s
        take = 0
        if not (self._is_ending() or is_paused or pause_s):
            # With a rate, not all at once.
            slots = len(self._free) if self._conditions.rate == inf else min(1, len(self._free))
            take = self._conditions.may_take(slots * (self._batch or 1))
        if self._ends or take or self.session.unsettled:
            self._exchange(take)
        elif self._is_busy or (not self._is_ending() and (is_paused or pause_s or self._resting)):
            self._wait_for_returns(min(_LOOK_S, pause_s or inf))
            if is_paused:
                # Nobody has looked for work meanwhile.
                self._conditions.look_again()
        else:
            self._conditions.check()
            self._over.set()

    def _collect(self) -> None:
        """Note what has returned, and free the slots of that and of those that have rested."""
        now_s = self._clock.monotonic()
        for slot, ends in taken_from(self._returned):
            self._ends += ends
            rest_of = self.session.held.policy.rest_s
            if rest_s := max(rest_of(end, job.attempt) for job, end in ends):
                heappush(self._resting, (now_s + rest_s, slot))
            else:
                self._free.append(slot)
        while self._resting and self._resting[0][0] <= now_s:
            self._free.append(heappop(self._resting)[1])

    def _exchange(self, take: int) -> None:
        ends, self._ends = self._ends, []
        sent_s = self._clock.monotonic()
        result = self.session.exchange(ends, take=take)
        if result.error is None:
            self._listener.note_contact()
        self._record(result, take, sent_s)
        if result.error is not None and not self.session.cut.is_made:
            self._listener.note_error(result.error)
        if result.jobs:
            now_s = self._clock.monotonic()
            # If the reply came late, their leases may have ended.
            if any(job.deadline_s <= now_s for job in result.jobs):
                self._renew_all()
            size = self._batch or 1
            for first in range(0, len(result.jobs), size):
                self._begin([*result.jobs[first : first + size]])
        elif result.error is not None:
            # Unless another call has succeeded since.
            if self.session.outage is not None:
                self._wait_for_returns(RECONNECT_PAUSE_S)
        # An item that was given up came in place of a job: do not wait, look again.
        elif take and all(ended.end is not None for ended in result.ended):
            self._wait_for_work()

    def _begin(self, jobs: list[Job]) -> None:
        # What was settled with them may have ended the worker. What is lost by now is not put back.
        if self._is_ending() or any(job.is_lost for job in jobs):
            self._ends += [(job, PutBack(front=True)) for job in jobs]
            return
        slot = self._free.popleft()
        for job in jobs:
            job.slot = slot
        self._active.add(slot)
        self._to_run.append((slot, jobs))

    def _call(self, slot: int, jobs: list[Job]) -> None:
        ends: Sequence[JobEnd] = [PutBack(front=True)] * len(jobs)
        try:
            for job in jobs:
                job.has_started = True
                self._listener.tell(control.Started(job))
            ends = self._ends_of(jobs)
        finally:
            self._returned_s = self._clock.monotonic()
            self._returned.append((slot, [*zip(jobs, ends, strict=True)]))
            self._active.discard(slot)
            if self._is_waiting:
                self.session.waiter.wake()

    def _ends_of(self, jobs: list[Job]) -> Sequence[JobEnd]:
        try:
            value = self._handler(jobs if self._batch else jobs[0])
        except Exception as error:
            value = Failure(_reason_of(error))
        except BaseException as error:
            self._fail(error)
            value = PutBack(front=True)
        if self._batch and isinstance(value, list):
            if len(value) == len(jobs):
                return [_end_of(job_value) for job_value in value]
            value = Failure(b"the handler returned %d ends for %d jobs" % (len(value), len(jobs)))
        return [_end_of(value)] * len(jobs)

    @property
    def _is_busy(self) -> bool:
        # In this order: a slot is active until what it returned is noted.
        return bool(self._active or self._returned)

    def _is_ending(self) -> bool:
        if self._stop.is_set:
            self._conditions.end(control.EndReason.STOPPED)
        self._conditions.drains |= self._stop.drains
        return self._over.is_set() or self._conditions.why is not None

    def _fail(self, error: BaseException) -> None:
        is_first, self._failure = self._failure is None, self._failure or error
        self._conditions.end(control.EndReason.STOPPED)
        self.session.waiter.wake()
        # The listener may be what failed.
        with suppress(Exception):
            if is_first:
                self._listener.tell(control.Failed(error))

    def _record(self, result: ExchangeResult, asked: int = 0, sent_s: float = -inf) -> None:
        self._conditions.note(result, asked, sent_s)
        lost = (control.Lost(job) for job in result.lost)
        self._listener.tell(*lost, *(ended for ended in result.ended if not ended.was_unused))

    def _wait_for_returns(self, limit_s: float = _LOOK_S) -> None:
        """Wait until something has returned, a slot has rested, or the worker is woken."""
        self._is_waiting = True
        if self._resting:
            limit_s = min(limit_s, self._resting[0][0] - self._clock.monotonic())
        # What has returned before does not wake it.
        if not self._returned:
            self.session.waiter.pause(max(0.0, limit_s))
        self._is_waiting = False

    def _wait_for_work(self) -> None:
        """Wait until there may be work, something has returned, or it is time to end."""
        self._is_waiting = True
        try:
            again_s = inf
            if not (self._is_busy or self._ends or self.session.unsettled):
                again_s = self._conditions.check()
            if self._returned or self._is_ending() or self._stop.is_paused:
                return
            now_s = self._clock.monotonic()
            if self._resting:
                again_s = min(again_s, now_s + _REST_LOOK_S)
            if again_s > now_s:
                self.session.wait_for_work(min(_IDLE_S, again_s - now_s))
                self._listener.note_contact()
        except ServerError as error:
            if not self.session.cut.is_made:
                self._listener.note_error(error)
                self.session.waiter.pause(RECONNECT_PAUSE_S)
        finally:
            self._is_waiting = False

    def _renew_all(self) -> None:
        self._listener.tell(*map(control.Lost, self.session.renew()))

    def _renew(self) -> None:
        session, longest_s = self.session, min(_LOOK_S, self.session.lease_s / 6)
        while True:
            try:
                if self._has_ended.wait(max(0.01, min(longest_s, session.next_renewal_s))):
                    return
                if self._stop.is_set:
                    with suppress(ServerError):
                        session.forgive()
                if session.next_renewal_s <= 0:
                    self._renew_all()
                    self._listener.note_contact()
            except BaseException as error:
                # It ends the worker; what runs until then is still renewed.
                self._fail(error)
                self._has_ended.wait(_LOOK_S)

    def _cut_last_calls(self) -> None:
        """End the calls of a worker that was told to stop, and has waited for them in vain."""
        while not self._has_ended.wait(_STOP_LOOK_S if self._stop.is_set else _LOOK_S):
            if not self._stop.is_set or self._active:
                continue
            limit_s = min(self._stop_s, self._stop.within_s)
            if not (self.session.held.all or self.session.unsettled):
                limit_s = min(limit_s, _LAST_REPLY_S)
            since_s = max(self._stop.since_s, self._returned_s)
            if self._clock.monotonic() - since_s >= limit_s:
                self.session.cut.make()
                self.session.waiter.wake()
                return


def _reason_of(error: Exception) -> bytes:
    try:
        text = str(error)
    except Exception as other:
        text = f"its text raises {type(other).__name__}"
    return f"{type(error).__name__}: {text}".encode("utf-8", "backslashreplace")


def _end_of(value: object) -> JobEnd:
    """Return the end that a function has returned; what is none is a failed attempt."""
    match value:
        case None | bytes():
            return Done(value)
        case Done(None | bytes()) | Failure(bytes()) | GiveUp(bytes()):
            return value
        case PutBack(_, int() | float() as rest_s) if 0 <= rest_s <= LONGEST_S:
            return value
    # The kind alone: the value may be data, which are not for messages.
    what = "with a value that cannot be" if isinstance(value, JobEnd) else "which is not a JobEnd"
    return Failure(f"the handler returned a {type(value).__name__}, {what}".encode())
