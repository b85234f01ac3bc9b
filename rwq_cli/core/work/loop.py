"""The loop of a worker: each thread runs functions, and leads whenever it has nothing to run.

The others wait for their turn to lead, so no item waits for a thread to be told. Whatever fails in
one of them ends the worker.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from heapq import heappop, heappush
from inspect import iscoroutinefunction
from math import inf
from threading import Event, Lock, RLock, Thread
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
# How often it is seen whether a worker that has failed still runs something; and how long its last
# call waits for one that hangs.
_FAILED_LOOK_S, _LAST_CALL_S = 0.05, 1.0
# How often a worker that waits for work looks whether a slot has rested.
_REST_LOOK_S = 0.1


class Worker:
    """One session, the functions that run at once, and the threads; see `WorkQueue.work`."""

    def __init__(
        self,
        conditions: control.StopConditions,
        handler: Handler,
        concurrency: int,
        batch: int | None,
        stop: control.StopToken | None,
        on_event: Callable[[control.WorkEvent], object] | None,
    ) -> None:
        if concurrency < 1 or (batch or 1) < 1:
            raise InvalidArgument(
                "the concurrency and the batch must be at least 1", "give 1 or more"
            )
        function: object = handler
        while isinstance(function, partial):
            function = function.func
        if iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__):
            raise TypeError("the handler is a coroutine function, which nothing would await")
        self._conditions, self.session = conditions, conditions.session
        self._clock = self.session.clock
        # It takes a list if there is a batch.
        self._handler: Callable[[Any], object] = handler
        self._concurrency, self._batch = concurrency, batch
        self._stop, self._on_event = stop or control.StopToken(), on_event
        # The slots that are free, and a heap of those that rest, and until when. All others are
        # busy: each is given to jobs when they are taken, and free when they have ended.
        self._free = deque(range(concurrency))
        self._resting: list[tuple[float, int]] = []
        # What whoever has nothing to run is to run next.
        self._to_run: deque[tuple[int, list[Job]]] = deque()
        # The jobs that have ended since the last exchange.
        self._ends: deque[tuple[Job, JobEnd]] = deque()
        # Held by the thread that leads; it may wait, and a job that ends then has to wake it.
        self._turn = Lock()
        self._is_waiting = False
        # Nobody is to lead any more.
        self._is_over = False
        self._failure: BaseException | None = None
        # Whether the listener was told that the server does not answer; None before it has.
        self._is_out: bool | None = None
        self._event_lock = RLock()
        self._has_ended = Event()

    def run(self) -> control.WorkSummary:
        renewer = Thread(target=self._renew, name="rwq-renewals", daemon=True)
        renewer.start()
        self._stop.sessions.add(self.session)
        try:
            if self._concurrency == 1:
                self._serve()
            else:
                self._serve_in_threads()
            if self._failure is not None:
                raise self._failure
        except BaseException:
            has_turn = self._turn.acquire(timeout=_LAST_CALL_S)
            # After that: the call that was under way may have settled some.
            running = [(job, PutBack(front=True)) for job in self.session.held.running]
            ends = [*taken_from(self._ends), *running]
            if has_turn:
                try:
                    self._record(self.session.exchange(ends))
                finally:
                    self._turn.release()
            else:
                # A call hangs, which is the last one then.
                self.session.held.end(ends)
            self._record(ExchangeResult(ended=self.session.held.abandon()))
            raise
        finally:
            self._stop.sessions.remove(self.session)
            self._has_ended.set()
            renewer.join()
        return self._conditions.summary()

    def _serve_in_threads(self) -> None:
        threads = [
            Thread(target=self._serve, name=f"rwq-work-{number + 1}", daemon=True)
            for number in range(self._concurrency)
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(_LOOK_S)
        except BaseException as error:
            self._fail(error)
            while self._is_busy and any(thread.is_alive() for thread in threads):
                time.sleep(_FAILED_LOOK_S)
            raise
        finally:
            self._is_over = True

    def _serve(self) -> None:
        try:
            while given := self._next():
                self._call(*given)
        except BaseException as error:
            self._is_over = True
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        is_first, self._failure = self._failure is None, self._failure or error
        self._conditions.end(control.EndReason.STOPPED)
        self.session.waiter.wake()
        # The listener may be what failed.
        with suppress(Exception):
            if is_first:
                self._tell(control.Failed(error))

    def _call(self, slot: int, jobs: list[Job]) -> None:
        end: JobEnd = PutBack(front=True)
        try:
            for job in jobs:
                job.has_started = True
                self._tell(control.Started(job))
            end = self._end_of(jobs)
        finally:
            self._ends.extend([(job, end) for job in jobs])
            # After that, because a worker with nothing to do ends.
            rest_of = self.session.held.policy.rest_s
            if rest_s := max(rest_of(end, job.attempt) for job in jobs):
                heappush(self._resting, (self._clock.monotonic() + rest_s, slot))
            else:
                self._free.append(slot)
            if self._is_waiting:
                self.session.waiter.wake()

    def _end_of(self, jobs: list[Job]) -> JobEnd:
        try:
            value = self._handler(jobs if self._batch else jobs[0])
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            return Failure(text.encode("utf-8", "backslashreplace"))
        except BaseException as error:
            self._fail(error)
            return PutBack(front=True)
        match value:
            case None | bytes():
                return Done(value)
            case Done(None | bytes()) | Failure(bytes()) | GiveUp(bytes()):
                return value
            case PutBack(_, int() | float() as rest_s) if 0 <= rest_s <= LONGEST_S:
                return value
        # The kind alone: the value may be data, which are not for messages.
        what = "with a value that cannot be" if isinstance(value, JobEnd) else "which is no end"
        return Failure(f"the handler returned a {type(value).__name__}, {what}".encode())

    def _next(self) -> tuple[int, list[Job]] | None:
        """The jobs that a thread is to run next, and their slot; None once the worker ends."""
        with self._turn:
            while not (self._to_run or self._is_over):
                self._lead()
            if self._is_over and self._ends:
                # The worker has ended by an error, or by Ctrl-C, while this thread waited for its
                # turn or for a reply.
                self._record(self.session.exchange(taken_from(self._ends)))
            return None if self._is_over else self._to_run.popleft()

    def _lead(self) -> None:
        while self._resting and self._resting[0][0] <= self._clock.monotonic():
            self._free.append(heappop(self._resting)[1])
        is_paused, free = self._stop.is_paused, len(self._free)
        take = 0
        if not (self._is_ending() or is_paused):
            take = self._conditions.may_take(len(self._free) * (self._batch or 1))
        # In this order: a job that ends notes its end first, and then frees its slot.
        is_busy, ends = self._is_busy, taken_from(self._ends)
        if ends or take or self.session.unsettled:
            self._exchange(ends, take)
        elif is_busy or (not self._is_ending() and (is_paused or self._resting)):
            self._wait_for_ends(free)
            if is_paused:
                # Nobody has looked for work meanwhile.
                self._conditions.look_again()
        else:
            self._conditions.check()
            self._is_over = True

    def _exchange(self, ends: Sequence[tuple[Job, JobEnd]], take: int) -> None:
        sent_s = self._clock.monotonic()
        result = self.session.exchange(ends, take=take)
        if result.error is None:
            self._note_contact()
        self._record(result, take, sent_s)
        if result.error is not None:
            self._note_error(result.error)
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
            if self.session.error is not None:
                self.session.waiter.pause(RECONNECT_PAUSE_S)
        # An item that was given up came in place of a job: do not wait, look again.
        elif take and all(ended.end is not None for ended in result.ended):
            self._wait_for_work()

    def _begin(self, jobs: list[Job]) -> None:
        # What was settled with them may have ended the worker. What is lost by now is not put back.
        if self._is_ending() or any(job.loss is not None for job in jobs):
            self._ends.extend((job, PutBack(front=True)) for job in jobs)
            return
        slot = self._free.popleft()
        for job in jobs:
            job.slot = slot
        self._to_run.append((slot, jobs))

    @property
    def _is_busy(self) -> bool:
        return len(self._free) + len(self._resting) < self._concurrency

    def _is_ending(self) -> bool:
        if self._stop.is_set:
            self._conditions.end(control.EndReason.STOPPED)
        self._conditions.drains |= self._stop.drains
        return self._conditions.why is not None

    def _record(self, result: ExchangeResult, asked: int = 0, sent_s: float = -inf) -> None:
        self._conditions.note(result, asked, sent_s)
        for job in result.lost:
            self._tell(control.Lost(job))
        for ended in result.ended:
            if not ended.was_unused:
                self._tell(ended)

    def _tell(self, event: control.WorkEvent) -> None:
        if self._on_event is not None:
            with self._event_lock:
                self._on_event(event)

    def _wait_for_ends(self, free: int) -> None:
        """Wait until something has ended, a slot has rested, or the worker is woken; not if there
        are other than so many free slots by now."""
        self._is_waiting = True
        until_s = self._resting[0][0] - self._clock.monotonic() if self._resting else _LOOK_S
        # What has ended before does not wake it.
        if not self._ends and len(self._free) == free:
            self.session.waiter.pause(min(_LOOK_S, max(0.0, until_s)))
        self._is_waiting = False

    def _wait_for_work(self) -> None:
        """Wait until there may be work, something has ended, or it is time to end."""
        self._is_waiting = True
        try:
            again_s = inf
            if not (self._is_busy or self._ends or self.session.unsettled):
                again_s = self._conditions.check()
            if self._ends or self._is_ending() or self._stop.is_paused:
                return
            now_s = self._clock.monotonic()
            if self._resting:
                again_s = min(again_s, now_s + _REST_LOOK_S)
            if again_s > now_s:
                self.session.wait_for_work(min(_IDLE_S, again_s - now_s))
                self._note_contact()
        except ServerError as error:
            self._note_error(error)
            self.session.waiter.pause(RECONNECT_PAUSE_S)
        finally:
            self._is_waiting = False

    def _note_contact(self) -> None:
        """Tell the listener when the server begins to answer, and when it no longer does."""
        error, since_s = self.session.error, self.session.failing_since_s
        if self._is_out is (error is not None):
            # A listener may be slow, and renewals do not wait for it without a reason.
            return
        with self._event_lock:
            was_out, self._is_out = self._is_out, error is not None
            if error is not None and not was_out:
                self._tell(control.Outage(error, self._conditions.reconnect_s))
            elif error is None and was_out is not False:
                self._tell(control.Contact(self._clock.monotonic() - since_s if was_out else None))

    def _note_error(self, error: ServerError) -> None:
        """Tell the listener of a call that failed, or raise its error if that ends the worker."""
        # A server that was never reached probably has another address.
        if self._is_out is None or self._conditions.ends_on(error):
            raise error
        self._note_contact()

    def _renew_all(self) -> None:
        for job in self.session.renew():
            self._tell(control.Lost(job))

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
                    self._note_contact()
            except BaseException as error:
                # It ends the worker; what runs until then is still renewed.
                self._fail(error)
                self._has_ended.wait(_LOOK_S)
