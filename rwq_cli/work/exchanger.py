"""The threads that talk to the server, so that a call that hangs delays no signal or timeout."""

from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from threading import Event, Thread
from typing import NamedTuple

from rwq_cli.core.errors import ServerError
from rwq_cli.core.work.job import ExchangeResult, Job
from rwq_cli.core.work.policy import JobEnd
from rwq_cli.core.work.session import WorkSession

_WAIT_S = 60.0
# How long a thread may take to end; it may be waiting for a reply.
_JOIN_S = 0.5


class Exchange(NamedTuple):
    """A request: finish these jobs, and take this many."""

    ends: Sequence[tuple[Job, JobEnd]]
    take: int


class Waited(NamedTuple):
    """The result of a wait.

    Attributes:
        found: Whether there probably is an item.
        error: Why the wait failed; None if it did not.
    """

    found: bool
    error: ServerError | None = None


class Exchanger:
    """Finishes jobs, takes new ones and waits for some, one request at a time.

    Args:
        session: The session.
        notify: Called from the thread when `take_result` has a result.

    Attributes:
        is_busy: Whether a request is outstanding.
        is_waiting: Whether it is a wait, which `WorkSession.wake` ends.
    """

    def __init__(self, session: WorkSession, notify: Callable[[], object]) -> None:
        self._session = session
        self._notify = notify
        self._requests: SimpleQueue[Exchange | float | None] = SimpleQueue()
        self._results: deque[ExchangeResult | Waited] = deque()
        self.is_busy = False
        self.is_waiting = False
        self._thread = Thread(target=self._run, name="exchange", daemon=True)
        self._thread.start()

    def exchange(self, ends: Sequence[tuple[Job, JobEnd]], take: int) -> None:
        """Request an exchange."""
        self.is_busy = True
        self._requests.put(Exchange(ends, take))

    def wait(self) -> None:
        """Request a wait for work."""
        self.is_busy = self.is_waiting = True
        self._requests.put(_WAIT_S)

    def take_result(self) -> ExchangeResult | Waited | None:
        """The result of the request; None if there is none yet."""
        if not self._results:
            return None
        self.is_busy = self.is_waiting = False
        return self._results.popleft()

    def close(self) -> None:
        """End the thread."""
        self._requests.put(None)
        self._session.wake()
        self._thread.join(_JOIN_S)

    def _run(self) -> None:
        while (request := self._requests.get()) is not None:
            self._results.append(self._result(request))
            self._notify()

    def _result(self, request: Exchange | float) -> ExchangeResult | Waited:
        if isinstance(request, Exchange):
            return self._session.exchange(request.ends, take=request.take)
        try:
            return Waited(self._session.wait_for_work(request))
        except ServerError as error:
            return Waited(False, error)


class Renewal(NamedTuple):
    """What a renewal found.

    Attributes:
        request: The last request that was made before it began; 0 if there was none.
        lost: The jobs that were found lost.
    """

    request: int
    lost: Sequence[Job]


class Renewer:
    """Renews the leases when they are due.

    Args:
        session: The session.
        notify: Called from the thread after each renewal.
    """

    def __init__(self, session: WorkSession, notify: Callable[[], object]) -> None:
        self._session = session
        self._notify = notify
        self._renewals: deque[Renewal] = deque()
        self._wakeup = Event()
        self._requests = 0
        self._is_closed = False
        self._thread = Thread(target=self._run, name="renew", daemon=True)
        self._thread.start()

    def renew_now(self) -> int:
        """Renew without delay, after a suspension. Returns the number of this request."""
        self._requests += 1
        self._wakeup.set()
        return self._requests

    def take_renewal(self) -> Renewal | None:
        """What a renewal found; None if there was no renewal."""
        return self._renewals.popleft() if self._renewals else None

    def close(self) -> None:
        """End the thread."""
        self._is_closed = True
        self._wakeup.set()
        self._thread.join(_JOIN_S)

    def _run(self) -> None:
        while True:
            # A lease that is taken meanwhile is not due earlier.
            is_woken = self._wakeup.wait(
                min(self._session.next_renewal_s, self._session.lease_s / 3)
            )
            self._wakeup.clear()
            if self._is_closed:
                return
            if is_woken or self._session.next_renewal_s <= 0:
                request = self._requests
                self._renewals.append(Renewal(request, self._session.renew()))
                self._notify()
