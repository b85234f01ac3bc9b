"""When a worker ends, by what its exchanges find, on a clock that stands still."""

from collections.abc import Callable, Iterable
from math import inf

import pytest

from rwq_cli.core.errors import PermissionDenied, ServerError, Unreachable, WrongType
from rwq_cli.core.work.control import StopConditions
from rwq_cli.core.work.job import (
    Done,
    ExchangeResult,
    Failure,
    Job,
    JobEnd,
    OnFail,
    PutBack,
    RetryPolicy,
)
from rwq_cli.core.work.session import WorkSession
from tests.conftest import FakeClock, Foreign
from tests.core.work.conftest import Unreliable


class Worker:
    """Makes exchanges, and lets the conditions know, as every worker does."""

    def __init__(self, session: WorkSession, **limits: float) -> None:
        self.session = session
        self.conditions = StopConditions(session, **limits)  # type: ignore[arg-type]

    def exchange(self, ends: Iterable[tuple[Job, JobEnd]] = (), *, take: int = 1) -> ExchangeResult:
        asked = self.conditions.may_take(take)
        sent_s = self.session.clock.monotonic()
        result = self.session.exchange(ends, take=asked)
        self.conditions.note(result, asked, sent_s)
        return result

    def take(self) -> Job:
        (job,) = self.exchange().jobs
        job.has_started = True
        return job

    def run(self, end: JobEnd) -> None:
        self.exchange([(self.take(), end)], take=0)

    def is_over(self) -> bool:
        self.conditions.check()
        return self.conditions.why is not None


@pytest.fixture
def start(open_session: Callable[..., WorkSession]) -> Callable[..., Worker]:

    def start(policy: RetryPolicy | None = None, **limits: float) -> Worker:
        return Worker(open_session(policy=policy), **limits)

    return start


Start = Callable[..., Worker]


class TestIdle:
    def test_work_begins_it_anew(self, start: Start, foreign: Foreign, clock: FakeClock) -> None:
        worker = start(idle_s=5)
        worker.exchange()
        worker.is_over()
        clock.now_s = 4
        foreign.waiting(b"1")
        worker.run(Done())
        worker.exchange()
        assert worker.conditions.check() == 9

    def test_the_time_of_an_outage_is_not_idle_time(
        self, start: Start, unreliable: Unreliable, clock: FakeClock
    ) -> None:
        worker = start(idle_s=5)
        worker.exchange()
        worker.is_over()
        unreliable.loses = "calls"
        clock.now_s = 60
        error = worker.exchange().error
        assert error is not None
        assert not worker.conditions.ends_on(error)
        unreliable.loses = ""
        worker.exchange()
        assert worker.conditions.check() == 65


class TestMaxItems:
    def test_what_is_put_back_unused_does_not_count(self, start: Start, foreign: Foreign) -> None:
        foreign.waiting(b"1", b"2")
        worker = start(max_items=2)
        one, two = worker.exchange(take=2).jobs
        one.has_started = True
        worker.exchange([(one, PutBack()), (two, PutBack(front=True))], take=0)
        assert not worker.is_over()
        assert len(worker.exchange(take=2).jobs) == 1


class TestFailures:
    @pytest.mark.parametrize(
        ("on_fail", "limits"), [(OnFail.STOP, {}), (OnFail.BURY, {"max_failures": 1})]
    )
    def test_a_lost_job_has_not_failed(
        self, start: Start, foreign: Foreign, on_fail: OnFail, limits: dict[str, float]
    ) -> None:
        foreign.waiting(b"1")
        worker = start(RetryPolicy(retries=0, on_fail=on_fail), **limits)
        job = worker.take()
        foreign.lease(b"1")
        worker.exchange([(job, Failure(b"why"))], take=0)
        assert not worker.is_over()


class TestOutages:
    def test_one_that_is_over_does_not(
        self, start: Start, unreliable: Unreliable, clock: FakeClock
    ) -> None:
        worker = start(reconnect_s=300)
        unreliable.loses = "calls"
        error = worker.exchange().error
        assert error is not None
        clock.now_s = 400
        unreliable.loses = ""
        worker.exchange()
        assert not worker.conditions.ends_on(error)

    @pytest.mark.parametrize(
        ("error", "ends"),
        [
            (WrongType("a list"), True),
            (PermissionDenied("for a moment"), False),
            (Unreachable("gone"), False),
        ],
    )
    def test_an_error_that_does_not_pass_ends_it(
        self, start: Start, error: ServerError, ends: bool
    ) -> None:
        assert start(reconnect_s=inf).conditions.ends_on(error) is ends
