"""The loop of a worker: commands, their pipes, signals, timeouts, and the session with the server.

One thread runs the commands and waits for whatever comes first. It never waits for the server: the
threads of `exchanger` do.
"""

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from math import inf
from selectors import EVENT_READ, DefaultSelector
from typing import NamedTuple

from rwq_cli.core.batches import in_batches
from rwq_cli.core.errors import RwqError, ServerError
from rwq_cli.core.work.job import Ended, ExchangeResult, Job, Loss
from rwq_cli.core.work.policy import Done, Failure, Fate, GiveUp, JobEnd, PutBack
from rwq_cli.core.work.session import WorkSession
from rwq_cli.core.work.stopping import StopConditions
from rwq_cli.output.escape import escaped_text
from rwq_cli.service.supervision import Supervision
from rwq_cli.work.child import BadArguments, CannotRun, Child, Exhausted, Outputs, Stdout
from rwq_cli.work.events import Event, EventKind, Progress
from rwq_cli.work.exchanger import Exchanger, Renewer, Waited
from rwq_cli.work.housekeeping import Housekeeper
from rwq_cli.work.invocations import Invocations
from rwq_cli.work.leftover_commands import watch_leftovers
from rwq_cli.work.listener import Listener
from rwq_cli.work.signals import NOTICE, Requests, SignalPipe, Stage, all_blocked
from rwq_cli.work.timers import Timers

# The exit codes of a command that mean something.
PUT_BACK = 75
GIVE_UP = 100
NOT_RUN = (126, 127)

# The pause before the server is tried again, and before a slot is used again whose command put its
# item back: what the command lacked is unlikely to be there at once.
_PAUSE_S = 1.0
# A command that has run for less may have been hit by a signal as it started.
_START_S = 1.0
# How often an idle loop shows that it is not stuck.
_BEAT_S = 5.0
# Commands that take less are given their next items before they end.
_SHORT_S = 0.05
# Enough items are taken ahead for this much time, so that several share a call. While more than
# half of those are left, commands that have ended wait this long to be reported together.
_SHARED_S = 0.02
# The output of a command that ends sooner is read once, when it has ended.
_UNREAD_S = 0.005
# How long items that were taken ahead may wait for a free slot.
_AHEAD_S = 1.0
# How long a killed worker waits for the server to take its items back.
_LAST_CALL_S = 3.0


class CommandLimits(NamedTuple):
    """How many commands run at once, and for how long.

    Attributes:
        concurrency: How many commands run at once.
        batch: How many items a command gets; None for one, without lines.
        max_time_s: How long a command may run, seconds; None for no limit.
        kill_after_s: How long after SIGTERM a command gets SIGKILL, seconds.
        grace_s: How long commands may go on when the worker is stopped, seconds; None for no limit.
    """

    concurrency: int
    batch: int | None
    max_time_s: float | None
    kill_after_s: float
    grace_s: float | None


class _Cause(Enum):
    """Why a command was ended by its worker."""

    TIMEOUT = "timeout"
    LOST = "lost"
    STOP = "stop"


class _Run:
    """A command that runs.

    Args:
        jobs: Its items.
        child: Its process.
        file: The file with its data; None for none.

    Attributes:
        began_s: When it was started.
        cause: Why it was ended; None if it was not.
        is_killed: Whether it got SIGKILL.
    """

    def __init__(self, jobs: Sequence[Job], child: Child, file: bytes | None) -> None:
        self.jobs = jobs
        self.child = child
        self.file = file
        self.began_s = time.monotonic()
        self.cause: _Cause | None = None
        self.is_killed = False


class _Exit(NamedTuple):
    """How the command of a job ended."""

    pid: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    run_s: float | None = None


class Worker:
    """Runs commands until it is to end; iterate over `events`.

    Args:
        session: The session with the server.
        invocations: Makes the commands.
        outputs: Where their output goes.
        limits: The limits of the commands.
        conditions: When to end.
        listener: Is told what happens.
        supervision: Answers supervisors.
        housekeeper: Makes the thread that cleans and counts, given a function to call from it;
            None for no such thread.
        yields_starts: Whether the start of a command is an event, too.

    Attributes:
        progress: Its progress.
    """

    def __init__(
        self,
        session: WorkSession,
        invocations: Invocations,
        outputs: Outputs,
        limits: CommandLimits,
        conditions: StopConditions,
        listener: Listener,
        supervision: Supervision,
        housekeeper: Callable[[Callable[[], object]], Housekeeper] | None = None,
        *,
        yields_starts: bool = True,
    ) -> None:
        self._session = session
        self._invocations = invocations
        self._outputs = outputs
        self._limits = limits
        self._conditions = conditions
        self._requests = Requests()
        self._listener = listener
        self._supervision = supervision
        self._make_housekeeper = housekeeper
        self._yields_starts = yields_starts
        self.progress = Progress()
        self._runs: dict[int, _Run] = {}
        self._run_of: dict[int, _Run] = {}
        self._exits: dict[int, _Exit] = {}
        self._ready: deque[Sequence[Job]] = deque()
        self._ready_since_s = 0.0
        self._ends: list[tuple[Job, JobEnd]] = []
        # When the ends that wait for others are sent.
        self._sends_at_s = inf
        # The commands whose output is not read yet, in the order of their starts.
        self._unread: deque[_Run] = deque()
        # Whether a command may have ended, and whether one is being ended by the worker.
        self._has_news = self._ends_some = False
        self._events: list[Event] = []
        self._timers = Timers()
        self._resting = 0
        self._mean_run_s = 1.0
        # How many items the last exchange asked for, and when.
        self._asked = 0
        self._asked_s = 0.0
        self._looks_again_at_s = inf
        self._retry_at_s = 0.0
        self._is_out = False
        self._is_exhausted = self._is_suspended = self._is_abandoned = False
        # The request for a renewal after which suspended commands go on.
        self._resuming_request = 0
        self._stage = Stage.WORKING
        self._failure: RwqError | None = None
        self._has_contact = False

    def events(self) -> Iterator[Sequence[Event]]:
        """Work; yields what happened.

        Raises:
            RwqError: The command cannot be run, or the server refused, or was lost for too long.
            KeyboardInterrupt: Signals ended the commands.
        """
        self._selector = DefaultSelector()
        self._signals = SignalPipe()
        self._selector.register(self._signals.read_fd, EVENT_READ, self._handle_notices)
        self._leftover_watch = watch_leftovers(
            self._invocations.mark(self._session.name), self._limits.kill_after_s
        )
        self._housekeeper: Housekeeper | None = None
        with all_blocked():
            self._exchanger = Exchanger(self._session, self._signals.notify)
            self._renewer = Renewer(self._session, self._signals.notify)
            if self._make_housekeeper is not None:
                self._housekeeper = self._make_housekeeper(self._signals.notify)
        try:
            self._tick()
            self._report_status()
            while True:
                self._advance()
                if self._events:
                    events, self._events = self._events, []
                    yield events
                if self._is_over():
                    break
                left_s = min(self._timers.left_s, _BEAT_S)
                self._supervision.beat(left_s)
                ready = self._selector.select(min(left_s, self._watch_outputs()))
                # A full pipe loses signals, so after an idle wait all commands are looked at.
                self._has_news = not ready
                for key, _ in ready:
                    key.data()
                self._timers.run()
        finally:
            self._close()
        if self._failure is not None:
            raise self._failure
        if self._stage >= Stage.ENDING:
            raise KeyboardInterrupt

    def _close(self) -> None:
        for run in self._runs.values():
            run.child.send(signal.SIGKILL)
            # So that its pipes are closed below.
            run.child.watch()
        self._listener.hide()
        for thread in (self._exchanger, self._renewer, self._housekeeper):
            if thread is not None:
                thread.close()
        for key in list(self._selector.get_map().values()):
            if key.fd != self._signals.read_fd:
                os.close(key.fd)
        self._selector.close()
        self._signals.close()
        if self._leftover_watch is not None:
            self._leftover_watch.close()
        self._invocations.files.close()

    # ---- what to do next

    def _advance(self) -> None:
        """Do everything that can be done now."""
        if self._has_news or self._ends_some:
            self._reap()
        self._follow_requests()
        self._start_ready()
        self._request_due()
        self.progress.running = len(self._runs)
        self.progress.is_paused = self._requests.is_paused
        self.progress.is_stopping = self._is_stopping

    def _watch_outputs(self) -> float:
        """Start reading the output of commands that still run; return when to look again, s."""
        now_s = time.monotonic()
        at_s = self._sends_at_s
        while self._unread:
            run = self._unread[0]
            if self._runs.get(run.child.pid) is run:
                if now_s < run.began_s + _UNREAD_S:
                    at_s = min(at_s, run.began_s + _UNREAD_S)
                    break
                run.child.watch()
            self._unread.popleft()
        return max(0.0, at_s - now_s)

    def _follow_requests(self) -> None:
        self._conditions.drains |= self._requests.drains
        if self._requests.is_paused:
            self._put_back_ready()
            self._conditions.look_again()
            self._conditions.restart_idle()
        # One after the other, also if two signals came at once.
        while self._stage < self._requests.stage:
            self._stage = Stage(self._stage + 1)
            self._begin_stage(self._stage)

    def _begin_stage(self, stage: Stage) -> None:
        if stage is Stage.STOPPING:
            self._supervision.stopping()
            if self._limits.grace_s is not None:
                end = self._requests.advance
                self._timers.after(self._limits.grace_s, lambda: end(Stage.ENDING))
            self._listener.stopping(len(self._runs))
        elif stage is Stage.ENDING:
            self._listener.ending(len(self._runs))
            for run in list(self._runs.values()):
                self._end(run, _Cause.STOP)
        else:
            for run in self._runs.values():
                run.cause = run.cause or _Cause.STOP
                self._ends_some = True
                self._kill(run)
            self._timers.after(_LAST_CALL_S, self._abandon)
        self._put_back_ready()

    def _abandon(self) -> None:
        """End without waiting for commands or the server."""
        self._is_abandoned = True

    def _is_over(self) -> bool:
        if self._is_abandoned:
            return True
        if self._runs or self._ready or self._ends or self._session.unsettled:
            return False
        if self._exchanger.is_busy and not self._exchanger.is_waiting:
            return False
        if self._is_stopping:
            return True
        self._look_again_at(self._conditions.check())
        return self._conditions.why is not None

    @property
    def _is_stopping(self) -> bool:
        """Whether it has stopped taking items and starting commands."""
        return self._requests.stage >= Stage.STOPPING

    def _look_again_at(self, at_s: float) -> None:
        """Try to take items again at this time, at the latest."""

        def look_again() -> None:
            self._looks_again_at_s = inf
            self._conditions.look_again()
            self._session.wake()

        if at_s < self._looks_again_at_s:
            self._looks_again_at_s = at_s
            self._timers.at(at_s, look_again)

    # ---- items

    def _request_due(self) -> None:
        """Request what is due from the server."""
        room = self._room()
        if self._exchanger.is_busy:
            if self._exchanger.is_waiting and (self._ends or not room):
                self._session.wake()
            return
        now_s = time.monotonic()
        if now_s < self._retry_at_s or self._waits_for_more(now_s):
            return
        self._sends_at_s = inf
        if self._ends or self._session.unsettled or (room and not self._conditions.is_empty):
            ends, self._ends = self._ends, []
            self._asked, self._asked_s = self._conditions.reserve(room), now_s
            self._exchanger.exchange(ends, self._asked)
        elif room and not self._is_over():
            self._exchanger.wait()

    def _waits_for_more(self, now_s: float) -> bool:
        """Whether to report ended commands later, together with others: enough was taken ahead."""
        if self._is_stopping or not 0 < self._ahead < 2 * len(self._ready):
            return False
        if self._ends and self._sends_at_s == inf:
            self._sends_at_s = now_s + _SHARED_S
        return now_s < self._sends_at_s

    @property
    def _ahead(self) -> int:
        """How many items to take ahead."""
        if self._limits.batch is not None or self._mean_run_s >= _SHORT_S:
            return 0
        if self._conditions.may_end_by_failure:
            # Whether a command is the last is known only when its end is settled.
            return 0
        places = self._limits.concurrency
        return places + int(places * _SHARED_S / self._mean_run_s)

    def _room(self) -> int:
        """How many items to take."""
        if self._is_stopping or self._requests.is_paused or self._is_exhausted:
            return 0
        taken = len(self._runs) + self._resting + len(self._ready)
        free = self._limits.concurrency + self._ahead - taken
        return self._conditions.room(max(0, free) * (self._limits.batch or 1))

    def _handle_notices(self) -> None:
        """Handle signals, and what other threads have done."""
        for number in self._signals.read():
            if number == signal.SIGCHLD:
                self._has_news = True
            elif number == NOTICE:
                self._take_results()
            elif number == signal.SIGTSTP:
                self._suspend()
            elif number == signal.SIGCONT:
                self._renewer.renew_now()
            else:
                self._requests.receive(number)

    def _take_results(self) -> None:
        result = self._exchanger.take_result()
        if isinstance(result, ExchangeResult):
            self._take_exchange(result)
        elif isinstance(result, Waited):
            # A wait that ends without an item was woken, or has lasted long enough.
            # After an error, an exchange finds out at once when the server answers again.
            if result.found or result.error is not None:
                self._conditions.look_again()
            self._note_contact(result.error)
        while (renewal := self._renewer.take_renewal()) is not None:
            self._note_contact(self._session.error)
            for job in renewal.lost:
                self._lose(job)
            # One from before the suspension does not know what was lost meanwhile.
            if renewal.request >= self._resuming_request:
                self._resume()
        if self._housekeeper is not None:
            self.progress.left = self._housekeeper.waiting
            for queue, counts in self._housekeeper.take_cleans():
                self._listener.cleaned(queue, counts)

    def _take_exchange(self, result: ExchangeResult) -> None:
        for job in result.lost:
            self._lose(job)
        self._conditions.note(result, self._asked, self._asked_s)
        if self._conditions.why is not None:
            self._requests.advance(Stage.STOPPING)
        for ended in result.ended:
            self._settle(ended)
        if self._asked and self._conditions.is_empty and self._housekeeper is not None:
            # It counts every few seconds only.
            self._housekeeper.waiting = self.progress.left = 0
        if result.jobs:
            self._queue_up(result.jobs)
        if result.was_sent:
            self._note_contact(result.error)

    def _queue_up(self, jobs: Sequence[Job]) -> None:
        """Hold jobs until there is a slot for them."""
        if self._limits.batch is None:
            self._ready.extend([job] for job in self._to_hold(jobs))
        else:
            by_queue: dict[bytes, list[Job]] = {}
            for job in jobs:
                by_queue.setdefault(job.queue, []).append(job)
            for of_queue in by_queue.values():
                self._ready.extend(in_batches(of_queue, items_max=self._limits.batch))
        if self._is_stopping or self._requests.is_paused:
            self._put_back_ready()
            return
        self._ready_since_s = time.monotonic()
        self._timers.after(_AHEAD_S, self._put_back_overdue)

    def _to_hold(self, jobs: Sequence[Job]) -> list[Job]:
        """Put back the jobs that are not to be held until there is a slot; return the others.

        If this worker is killed, a clean counts a return of each item that it holds. So an item
        that has been returned before is not held: it must not use up its attempts beside one that
        kills its workers.
        """
        slots = self._limits.concurrency - len(self._runs) - self._resting - len(self._ready)
        returned = [job for job in jobs[max(0, slots) :] if job.returns]
        if not returned:
            return list(jobs)
        self._take_none_ahead()
        self._put_back(returned)
        return [job for job in jobs if job not in returned]

    def _put_back_overdue(self) -> None:
        """Put back what was taken ahead and has waited for too long: commands are slow by now."""
        if self._ready and time.monotonic() - self._ready_since_s >= _AHEAD_S:
            self._take_none_ahead()
            self._put_back_ready()

    def _take_none_ahead(self) -> None:
        """Take no items ahead until some more commands were short."""
        self._mean_run_s = 20 * _SHORT_S

    def _put_back_ready(self) -> None:
        for jobs in self._ready:
            self._put_back(jobs)
        self._ready.clear()

    def _put_back(self, jobs: Sequence[Job]) -> None:
        """Put back jobs that were not started."""
        self._ends += [(job, PutBack(front=True)) for job in jobs]

    def _lose(self, job: Job) -> None:
        """Do what follows from a lost lease: end the command, or put the rest of its batch back."""
        run = self._run_of.get(id(job))
        if run is None:
            for jobs in list(self._ready):
                if job in jobs:
                    self._ready.remove(jobs)
                    self._put_back([other for other in jobs if other is not job])
                    self._record(job, EventKind.LOST, _Exit(), reason=_loss(job))
        elif all(each.loss is not None for each in run.jobs):
            self._end(run, _Cause.LOST)

    def _note_contact(self, error: ServerError | None) -> None:
        """Follow whether the server answers, and end the worker if it does not for too long."""
        now_s = time.monotonic()
        if error is None:
            if not self._has_contact or self._is_out:
                self._supervision.ready(self._listener.status(self.progress))
            self._has_contact = True
            if self._is_out:
                self._listener.reconnected(now_s - self._session.failing_since_s)
                self._is_out = False
            return
        self._retry_at_s = now_s + _PAUSE_S
        self._timers.after(_PAUSE_S, lambda: None)
        if error.is_transient and self._has_contact and not self._is_out:
            self._is_out = True
            self._supervision.lost(escaped_text(error.message))
            self._listener.disconnected(error)
        # A server that was never reached probably has another address.
        if self._conditions.ends_on(error) or not self._has_contact:
            self._fail(error)
        has_given_up = self._stage >= Stage.ENDING or isinstance(self._failure, ServerError)
        # The next exchange sends what has ended since.
        if has_given_up and not (self._runs or self._ends):
            self._abandon()

    def _fail(self, error: RwqError) -> None:
        """End with this error when the commands have ended."""
        self._failure = self._failure or error
        self._requests.advance(Stage.STOPPING)

    def _settle(self, ended: Ended) -> None:
        """Record an end that the server has acknowledged."""
        if ended.was_unused:
            return
        job = ended.job
        is_lost = ended.fate is Fate.LOST
        self._record(
            job,
            _KINDS[ended.fate],
            self._exits.pop(id(job), _Exit()),
            reason=_loss(job) if is_lost else _reason_of(ended),
            delay_s=ended.step.delay_s if ended.fate is Fate.RETRY else None,
            gave_up=ended.gave_up,
            was_attempted=ended.end is not None,
        )
        if ended.gave_up and ended.fate is Fate.RELEASED:
            # It may be the only item, and fail at once again.
            self._rest()

    def _record(
        self,
        job: Job,
        kind: EventKind,
        exit: _Exit,
        *,
        reason: bytes | None = None,
        delay_s: float | None = None,
        gave_up: bool = False,
        was_attempted: bool = True,
    ) -> None:
        self.progress.counts[kind] += 1
        self.progress.gave_up += gave_up
        event = Event(
            kind,
            job.queue,
            job.item_id,
            job.attempt if was_attempted else job.attempt - 1,
            job.returns,
            *exit,
            reason,
            delay_s,
            gave_up,
            time.time(),
        )
        self._events.append(event)
        # What a successful command did to its own item is not reported. A lease ends early only by
        # a command, such as `release`.
        is_early = job.loss is Loss.ENDED and time.monotonic() < job.deadline_s
        is_own_doing = exit.exit_code == 0 and (is_early or job.loss in (Loss.MOVED, Loss.GONE))
        if reason is not None and not is_own_doing:
            self._listener.failed(event)

    # ---- commands

    def _start_ready(self) -> None:
        while self._ready and not self._is_exhausted and not self._is_stopping:
            if len(self._runs) + self._resting >= self._limits.concurrency:
                return
            self._start(self._ready.popleft())

    def _start(self, jobs: Sequence[Job]) -> None:
        """Start the command for these jobs."""
        file: bytes | None = None
        try:
            file = self._invocations.file_for(jobs)
            child = Child(self._invocations.of(jobs, file), self._outputs, self._selector)
        except BadArguments as error:
            self._ends += [(job, GiveUp(str(error).encode())) for job in jobs]
        except Exhausted as error:
            if not self._runs:
                self._put_back(jobs)
                self._fail(error)
                return
            # When a command has ended, there may be room.
            self._is_exhausted = True
            self._ready.appendleft(jobs)
        except CannotRun as error:
            self._put_back(jobs)
            self._fail(error)
        else:
            self._watch(_Run(jobs, child, file))
            return
        if file is not None:
            self._invocations.files.remove(file)

    def _watch(self, run: _Run) -> None:
        self._runs[run.child.pid] = run
        self._unread.append(run)
        for job in run.jobs:
            job.has_started = True
            self._run_of[id(job)] = run
            if self._yields_starts:
                self._record(job, EventKind.STARTED, _Exit(run.child.pid))
        if self._limits.max_time_s is not None:
            self._timers.after(self._limits.max_time_s, lambda: self._end(run, _Cause.TIMEOUT))

    def _end(self, run: _Run, cause: _Cause) -> None:
        """Send SIGTERM to a command, and SIGKILL later."""
        if run.cause is not None or self._runs.get(run.child.pid) is not run:
            return
        run.cause = cause
        self._ends_some = True
        # The end of its stderr is waited for.
        run.child.watch()
        run.child.send(signal.SIGTERM)
        # One that is stopped cannot end.
        run.child.send(signal.SIGCONT)
        self._timers.after(self._limits.kill_after_s, lambda: self._kill(run))

    def _kill(self, run: _Run) -> None:
        if self._runs.get(run.child.pid) is run:
            run.is_killed = True
            run.child.send(signal.SIGKILL)

    def _reap(self) -> None:
        """Find out which commands have ended."""
        for run in list(self._runs.values()):
            if run.is_killed:
                code = run.child.end_group()
            else:
                code = run.child.poll(leave_group=run.cause is None)
            if code is not None:
                self._finish(run, code)
        if self._ends_some:
            self._ends_some = any(run.cause is not None for run in self._runs.values())

    def _finish(self, run: _Run, code: int) -> None:
        """Take note of a command that has ended."""
        run_s = time.monotonic() - run.began_s
        self._mean_run_s = (self._mean_run_s + run_s) / 2
        del self._runs[run.child.pid]
        self._is_exhausted = False
        run.child.finish()
        if run.file is not None:
            self._invocations.files.remove(run.file)
        exited = _Exit(run.child.pid, code, None, run_s)
        if code < 0:
            exited = _Exit(run.child.pid, None, -code, run_s)
        end = self._judge_exit(run, code)
        for job in run.jobs:
            del self._run_of[id(job)]
            if job.loss is None:
                self._exits[id(job)] = exited
                self._ends.append((job, end))
            else:
                self._record(job, EventKind.LOST, exited, reason=_loss(job))
                # The command may have added items.
                self._conditions.look_again()

    def _judge_exit(self, run: _Run, code: int) -> JobEnd:
        """Decide what becomes of the items of a command; it may pause a slot or end the worker."""
        if run.cause is _Cause.TIMEOUT:
            return Failure(_reason(run, f"timed out after {self._limits.max_time_s:g}s".encode()))
        if code == 0:
            return Done(self._result(run))
        if run.cause is not None or self._was_hit(run, code) or run.child.has_lost_stdout():
            return PutBack(front=True)
        if code == PUT_BACK:
            self._rest()
            return PutBack()
        if code == GIVE_UP:
            return GiveUp(_reason(run, b"exit 100"))
        if code in NOT_RUN:
            said = run.child.stderr_tail.decode("utf-8", "replace")
            self._fail(CannotRun(f"the command cannot be run: exit {code}", said or None))
            return PutBack(front=True)
        if code < 0:
            return Failure(_reason(run, signal_name(-code).encode()))
        return Failure(_reason(run, b"exit %d" % code))

    def _was_hit(self, run: _Run, code: int) -> bool:
        """Whether a signal to the worker's process group, such as that of Ctrl-C, ended a command.

        It is in that group itself for a moment, until it has a group of its own.
        """
        is_young = time.monotonic() < run.began_s + _START_S
        return code < 0 and is_young and self._requests.has_received(-code, run.began_s)

    def _result(self, run: _Run) -> bytes | None:
        if self._outputs.stdout is not Stdout.KEPT:
            return None
        if run.child.result.is_cut:
            self._listener.result_cut(run.jobs[0].item_id)
        return run.child.result.value

    def _rest(self) -> None:
        """Leave a slot empty for a moment."""

        def end() -> None:
            self._resting -= 1

        self._resting += 1
        self._timers.after(_PAUSE_S, end)

    # ---- the terminal

    def _suspend(self) -> None:
        """Ctrl-Z: stop the commands, and then this process, until it is continued."""
        self._listener.hide()
        for run in self._runs.values():
            run.child.send(signal.SIGTSTP)
        began_s = time.monotonic()
        self._is_suspended = True
        # Sent to this thread: it stops here, even if other threads run on for a moment.
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        self._timers.shift(time.monotonic() - began_s)
        self._looks_again_at_s = inf
        self._conditions.restart_idle()
        # The commands go on when it is known whose items they still are.
        self._resuming_request = self._renewer.renew_now()

    def _resume(self) -> None:
        if self._is_suspended:
            self._is_suspended = False
            for run in self._runs.values():
                run.child.send(signal.SIGCONT)

    def _report_status(self) -> None:
        if self._has_contact and not self._is_out:
            self._supervision.status(self._listener.status(self.progress))
        self._timers.after(_BEAT_S, self._report_status)

    def _tick(self) -> None:
        if self._listener.tick_s is not None:
            self._listener.tick(self.progress)
            self._timers.after(self._listener.tick_s, self._tick)


def signal_name(number: int) -> str:
    """The name of a signal, such as `SIGKILL`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _reason(run: _Run, how: bytes) -> bytes:
    """How a command failed, and the end of its stderr."""
    said = run.child.stderr_tail
    return how + (b": " + said if said else b"")


def _reason_of(ended: Ended) -> bytes | None:
    """Why an item was retried or given up; None for the others."""
    if isinstance(ended.end, Failure | GiveUp):
        return ended.end.reason
    return ended.step.data if ended.end is None else None


def _loss(job: Job) -> bytes:
    return _LOSSES[job.loss or Loss.ENDED]


_KINDS = {fate: EventKind(fate.value) for fate in Fate}
_LOSSES = {
    Loss.TAKEN: b"another session holds the item",
    Loss.ENDED: b"the lease ended",
    Loss.MOVED: b"the item was delayed or buried meanwhile",
    Loss.GONE: b"the item was completed or removed meanwhile",
    Loss.WRONG_TYPE: b"something else has the data key or a lease key of the item",
    Loss.UNREACHABLE: b"the lease ended while the server did not answer",
}
