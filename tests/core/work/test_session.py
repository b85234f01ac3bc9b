"""Leasing, renewing and finishing jobs, by the keys that they leave."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from rwq_cli.core import InvalidArgument, WorkQueue
from rwq_cli.core.errors import ConnectionLost, OutOfMemory, ServerError, WrongType
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.work.job import (
    Done,
    Failure,
    Fate,
    GiveUp,
    Job,
    JobEnd,
    Loss,
    PutBack,
    RetryPolicy,
)
from rwq_cli.core.work.session import WorkSession
from tests.conftest import HOLDER, QUEUE, Backend, FakeClock, Foreign, contents
from tests.core.work.conftest import LEASE_S, Unreliable

# Every way to end a job, and what becomes of its item.
WAYS: dict[str, tuple[JobEnd, Fate]] = {
    "complete": (Done(), Fate.COMPLETED),
    "complete with a result": (Done(b"result"), Fate.COMPLETED),
    "retry": (Failure(b"why"), Fate.RETRY),
    "bury": (GiveUp(b"why"), Fate.BURIED),
    "release": (PutBack(), Fate.RELEASED),
    "release to the front": (PutBack(front=True), Fate.RELEASED),
}
ENDS = {name: end for name, (end, _) in WAYS.items()}
DONE_FATES = {name: fate for name, (_, fate) in WAYS.items()}
every_end = pytest.mark.parametrize("name", ENDS)


def take(session: WorkSession, count: int = 1) -> list[Job]:
    result = session.exchange(take=count)
    assert result.error is None
    return list(result.jobs)


def finish(session: WorkSession, job: Job, end: JobEnd) -> Fate:
    result = session.exchange([(job, end)])
    assert result.error is None
    (ended,) = result.ended
    assert ended.job is job
    assert ended.end == end
    return ended.fate


def counts(raw: redis.Redis) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = raw.hgetall(QueueKeys(QUEUE).returns)
    return found


# Taking.


def test_a_job_has_item_and_lease_under_both_names(
    session: WorkSession, foreign: Foreign, raw: redis.Redis, keys: QueueKeys
) -> None:
    foreign.waiting(b"1", b"2")
    (job,) = take(session)
    assert (job.queue, job.item_id, job.data) == (QUEUE, b"1", b"data of 1")
    assert (job.attempt, job.returns, job.is_last, job.loss) == (1, 0, False, None)
    assert job.holder.startswith(HOLDER + b"+")
    assert raw.mget(keys.lease(b"1"), keys.old_lease(b"1")) == [job.holder] * 2
    assert 0 < raw.pttl(keys.lease(b"1")) <= LEASE_S * 1000
    assert raw.lrange(keys.processing, 0, -1) == [b"1"]
    assert session.held.running == [job]


def test_the_jobs_are_of_the_first_queue_that_has_any(
    open_session: Callable[..., WorkSession], raw: redis.Redis
) -> None:
    Foreign(raw, b"urgent").waiting(b"1")
    Foreign(raw, b"bulk").waiting(b"2", b"3", b"4")
    session = open_session(b"none", b"urgent", b"urgent", b"bulk")
    assert [(job.queue, job.item_id) for job in take(session, 3)] == [(b"urgent", b"1")]
    assert [(job.queue, job.item_id) for job in take(session, 2)] == [
        (b"bulk", b"2"),
        (b"bulk", b"3"),
    ]


def test_a_fair_session_takes_from_every_queue(
    open_session: Callable[..., WorkSession], raw: redis.Redis
) -> None:
    names = [b"a", b"b", b"c"]
    for name in names:
        Foreign(raw, name).waiting(*(b"%d" % number for number in range(20)))
    session = open_session(*names, fair=True)
    assert {job.queue for _ in range(20) for job in take(session)} == set(names)


def test_queues_on_different_connections_are_refused(backend: Backend) -> None:
    with pytest.raises(InvalidArgument):
        WorkSession([])
    with pytest.raises(InvalidArgument):
        WorkSession([WorkQueue(backend.connect(), b"a"), WorkQueue(backend.connect(), b"b")])


# Finishing.


def test_a_batchs_last_retry_is_due_when_said(
    open_session: Callable[..., WorkSession], foreign: Foreign, raw: redis.Redis, keys: QueueKeys
) -> None:
    foreign.waiting(*(b"%d" % number for number in range(250)))
    # Rounded up, by the server's clock, to 11 ms.
    session = open_session(policy=RetryPolicy(backoff_s=0.0106, jitter=0))
    session.exchange([(job, Failure(b"why")) for job in take(session, 250)])
    dues_ms = [due_ms for _, due_ms in raw.zrange(keys.delayed, 0, -1, withscores=True)]
    assert len(dues_ms) == 250
    assert session.held.last_retry_s * 1000 >= 11 + max(dues_ms) - min(dues_ms)


def test_many_jobs_end_at_once_each_in_its_own_way(
    session: WorkSession, foreign: Foreign, raw: redis.Redis, keys: QueueKeys
) -> None:
    ids = [b"%03d" % number for number in range(200)]
    foreign.waiting(*ids)
    jobs = take(session, 200)
    ends = [list(ENDS.values())[at % len(ENDS)] for at in range(200)]
    result = session.exchange(zip(jobs, ends, strict=True))
    fates = list(DONE_FATES.values())
    assert {e.job.item_id: e.fate for e in result.ended} == {
        item_id: fates[at % len(ENDS)] for at, item_id in enumerate(ids)
    }
    lengths = [raw.llen(keys.main), raw.zcard(keys.delayed), raw.zcard(keys.buried)]
    assert lengths == [66, 33, 33]
    assert raw.llen(keys.processing) == 0
    assert raw.lrange(keys.main, -2, -1) == [b"011", b"005"]


# Losing leases.


def _expire(raw: redis.Redis, keys: QueueKeys) -> None:
    raw.delete(keys.lease(b"1"), keys.old_lease(b"1"))


def _return(raw: redis.Redis, keys: QueueKeys) -> None:
    """As our clean does."""
    raw.lrem(keys.processing, 0, b"1")
    raw.lpush(keys.main, b"1")
    for key in (keys.lease(b"1"), keys.old_lease(b"1")):
        raw.set(key, b"rwq-settling:returned", px=30_000)


def _steal(raw: redis.Redis, keys: QueueKeys) -> None:  # noqa: ARG001
    Foreign(raw).lease(b"1")


def _steal_old(raw: redis.Redis, keys: QueueKeys) -> None:
    """A worker of 0.1 has it, and our lease has ended."""
    _expire(raw, keys)
    Foreign(raw).lease(b"1", generations="old")


def _bury(raw: redis.Redis, keys: QueueKeys) -> None:
    raw.delete(keys.item(b"1"), keys.processing)
    Foreign(raw).buried(b"1")


def _remove(raw: redis.Redis, keys: QueueKeys) -> None:
    _expire(raw, keys)
    raw.delete(keys.item(b"1"), keys.processing)


def _take_away(raw: redis.Redis, keys: QueueKeys) -> None:
    """As the complete of a worker of 0.1 begins, which reports success by it."""
    raw.lrem(keys.processing, 0, b"1")


_CASES = [
    *((Loss.ENDED, _expire), (Loss.ENDED, _return), (Loss.TAKEN, _steal)),
    *((Loss.TAKEN, _steal_old), (Loss.MOVED, _bury), (Loss.GONE, _remove)),
]
every_loss = pytest.mark.parametrize(("loss", "lose"), _CASES)


@every_end
@pytest.mark.parametrize(("loss", "lose"), [*_CASES, (Loss.ENDED, _take_away)])
def test_an_item_no_longer_held_is_left_alone(
    session: WorkSession,
    foreign: Foreign,
    raw: redis.Redis,
    keys: QueueKeys,
    name: str,
    loss: Loss,
    lose: Callable[[redis.Redis, QueueKeys], None],
) -> None:
    foreign.waiting(b"1", b"2")
    (job,) = take(session)
    lose(raw, keys)
    before = contents(raw)
    assert finish(session, job, ENDS[name]) is Fate.LOST
    assert job.loss is loss
    after = contents(raw)
    # A complete drops the traces of an item that is gone.
    assert after == before
    assert session.held.running == []


@every_loss
def test_a_renewal_reports_each_lost_job_once(
    session: WorkSession,
    foreign: Foreign,
    raw: redis.Redis,
    keys: QueueKeys,
    loss: Loss,
    lose: Callable[[redis.Redis, QueueKeys], None],
) -> None:
    foreign.waiting(b"1", b"2")
    job, other = take(session, 2)
    lose(raw, keys)
    before = contents(raw)
    assert session.renew() == [job]
    assert (job.loss, other.loss) == (loss, None)
    assert contents(raw) == before
    assert session.renew() == []
    assert session.held.running == [other]
    assert finish(session, job, Done()) is Fate.LOST


def test_a_lost_item_taken_again_is_another_job(
    session: WorkSession, foreign: Foreign, raw: redis.Redis, keys: QueueKeys
) -> None:
    foreign.waiting(b"1")
    (first,) = take(session)
    _return(raw, keys)
    result = session.exchange(take=1)
    (second,) = result.jobs
    assert list(result.lost) == [first]
    assert first.loss is Loss.TAKEN
    assert finish(session, first, Done()) is Fate.LOST
    assert raw.exists(keys.item(b"1"))
    assert session.held.running == [second]
    assert finish(session, second, Done()) is Fate.COMPLETED


def test_an_end_under_an_old_lease_spares_the_new(
    session: WorkSession,
    unreliable: Unreliable,
    foreign: Foreign,
    raw: redis.Redis,
    keys: QueueKeys,
) -> None:
    foreign.waiting(b"1")
    (first,) = take(session)
    unreliable.loses = "calls"
    assert session.exchange([(first, Done())]).error is not None
    _return(raw, keys)
    unreliable.loses = ""
    # The first end is sent in front of the call that takes the item again.
    result = session.exchange(take=1)
    assert [(ended.job, ended.fate) for ended in result.ended] == [(first, Fate.LOST)]
    (second,) = result.jobs
    assert finish(session, second, Done()) is Fate.COMPLETED


# Renewing.


def test_a_renewal_of_all_leases_is_one_round_trip(
    open_session: Callable[..., WorkSession],
    unreliable: Unreliable,
    raw: redis.Redis,
    clock: FakeClock,
) -> None:
    for name in (b"a", b"b"):
        Foreign(raw, name).waiting(*(b"%d" % number for number in range(300)))
    session = open_session(b"a", b"b")
    jobs = [job for _ in range(4) for job in take(session, 150)]
    assert len(jobs) == 600
    lease_keys = [
        key
        for job in jobs
        for key in (job.handle.keys.lease(job.item_id), job.handle.keys.old_lease(job.item_id))
    ]
    for key in lease_keys:
        raw.pexpire(key, 5_000)
    clock.now_s += 25
    before = unreliable.round_trips
    assert session.renew() == []
    assert unreliable.round_trips == before + 1
    assert all(raw.pttl(key) > 50_000 for key in lease_keys)
    assert {job.deadline_s for job in jobs} == {25 + LEASE_S}


def test_a_renewal_is_due_at_a_third_of_the_oldest(
    session: WorkSession, foreign: Foreign, clock: FakeClock
) -> None:
    foreign.waiting(b"1", b"2")
    assert session.next_renewal_s == float("inf")
    (first,) = take(session)
    clock.now_s += 5
    take(session)
    assert session.next_renewal_s == pytest.approx(LEASE_S / 3 - 5)
    finish(session, first, Done())
    assert session.next_renewal_s == pytest.approx(LEASE_S / 3)
    clock.now_s += 30
    assert session.next_renewal_s == 0
    session.renew()
    assert session.next_renewal_s == pytest.approx(LEASE_S / 3)


@pytest.mark.parametrize("lost", ["calls", "replies"])
def test_a_gone_server_loses_no_job_within_its_lease(
    session: WorkSession, unreliable: Unreliable, foreign: Foreign, clock: FakeClock, lost: str
) -> None:
    foreign.waiting(b"1", b"2")
    early, late = [take(session)[0], (setattr(clock, "now_s", 10.0), take(session)[0])[1]]
    unreliable.loses = lost
    for now_s in (20.0, 40.0, LEASE_S - 0.1):
        clock.now_s = now_s
        assert session.renew() == []
        assert isinstance(session.outage, ServerError)
        assert session.outage_since_s == 20
        assert session.next_renewal_s == pytest.approx(1.0)
    clock.now_s = LEASE_S
    assert session.renew() == [early]
    assert (early.loss, late.loss) == (Loss.UNREACHABLE, None)
    unreliable.loses = ""
    assert session.renew() == []
    assert session.outage is None
    assert late.deadline_s == 2 * LEASE_S
    assert finish(session, early, Done()) is Fate.LOST
    assert finish(session, late, Done()) is Fate.COMPLETED


def test_a_renewal_does_not_judge_a_job_that_has_ended(
    session: WorkSession, unreliable: Unreliable, foreign: Foreign
) -> None:
    foreign.waiting(b"1")
    (job,) = take(session)
    unreliable.loses = "replies"
    session.exchange([(job, Done())])
    unreliable.loses = ""
    assert session.renew() == []
    assert job.loss is None
    assert [ended.fate for ended in session.exchange().ended] == [Fate.COMPLETED]


# Lost calls and replies.


@every_end
@pytest.mark.parametrize("lost", ["calls", "replies"])
def test_an_end_that_was_not_acknowledged_is_done_once(
    session: WorkSession,
    unreliable: Unreliable,
    foreign: Foreign,
    raw: redis.Redis,
    name: str,
    lost: str,
) -> None:
    foreign.waiting(b"1")
    (job,) = take(session)
    unreliable.loses = lost
    result = session.exchange([(job, ENDS[name])], take=1)
    assert (list(result.ended), list(result.jobs)) == ([], [])
    assert result.error is session.outage is not None
    # The end, and what the call may have leased.
    assert session.unsettled == (1 if lost == "calls" else 2)
    unreliable.loses = ""
    result = session.exchange()
    assert result.error is None
    assert [ended.fate for ended in result.ended] == [DONE_FATES[name]]
    assert session.unsettled == 0
    assert session.exchange().ended == []
    assert session.held.running == []
    assert counts(raw) == ({b"1": b"1"} if name == "retry" else {})


@every_end
def test_an_end_in_doubt_is_not_done_past_its_lease(
    session: WorkSession, unreliable: Unreliable, foreign: Foreign, clock: FakeClock, name: str
) -> None:
    """Another worker may have done it."""
    foreign.waiting(b"1")
    (job,) = take(session)
    unreliable.loses = "replies"
    session.exchange([(job, ENDS[name])])
    unreliable.loses = ""
    clock.now_s = LEASE_S
    assert [ended.fate for ended in session.exchange().ended] == [Fate.LOST]
    assert job.loss is Loss.UNREACHABLE


@every_end
def test_an_end_in_doubt_leaves_later_changes(
    session: WorkSession, unreliable: Unreliable, foreign: Foreign, raw: redis.Redis, name: str
) -> None:
    foreign.waiting(b"1")
    (job,) = take(session)
    unreliable.loses = "replies"
    session.exchange([(job, ENDS[name])])
    unreliable.loses = ""
    raw.flushall()
    foreign.leased(b"1")
    before = contents(raw)
    session.exchange()
    assert contents(raw) == before
    assert session.unsettled == 0


def test_items_leased_by_a_lost_reply_are_put_back(
    session: WorkSession,
    unreliable: Unreliable,
    foreign: Foreign,
    raw: redis.Redis,
    keys: QueueKeys,
) -> None:
    foreign.waiting(b"1", b"2", b"3", b"4")
    (held,) = take(session)
    foreign.leased(b"theirs")
    unreliable.loses = "replies"
    assert session.exchange(take=2).error is not None
    assert raw.lrange(keys.main, 0, -1) == [b"4"]
    unreliable.loses = ""
    result = session.exchange(take=3)
    assert result.error is None
    assert [job.item_id for job in result.jobs] == [b"2", b"3", b"4"]
    assert [job.attempt for job in result.jobs] == [1, 1, 1]
    assert session.held.running == [held, *result.jobs]
    assert raw.get(keys.lease(b"theirs")) == b"them"


def test_a_reply_lost_on_one_node_is_in_doubt(
    session: WorkSession, unreliable: Unreliable, foreign: Foreign
) -> None:
    foreign.waiting(b"1", b"2", b"3")
    (job,) = take(session)
    unreliable.refused = {0: ConnectionLost("lost it"), 1: ConnectionLost("lost it")}
    assert session.exchange([(job, Done(b"result"))], take=1).error is not None
    unreliable.refused = {}
    result = session.exchange(take=2)
    assert [ended.fate for ended in result.ended] == [Fate.COMPLETED]
    assert [job.item_id for job in result.jobs] == [b"2", b"3"]


def test_a_lease_in_doubt_holds_up_no_end(
    open_session: Callable[..., WorkSession], unreliable: Unreliable, raw: redis.Redis
) -> None:
    for name in (b"a", b"b"):
        Foreign(raw, name).waiting(name + b"1", name + b"2")
    session = open_session(b"a", b"b")
    jobs = take(session, 2)
    unreliable.loses = "replies of scripts"
    session.exchange(take=1)
    # What looks for the items of the lost reply fails; and then succeeds.
    unreliable.loses, unreliable.fails = "", "LRANGE"
    result = session.exchange([(job, Done()) for job in jobs], take=2)
    assert [ended.fate for ended in result.ended] == [Fate.COMPLETED] * 2
    assert (result.error is not None, session.unsettled) == (True, 1)
    unreliable.fails = ""
    session.exchange(take=2)
    assert session.unsettled == 0


def test_a_job_is_forgiven_once_despite_a_lost_reply(
    session: WorkSession,
    unreliable: Unreliable,
    foreign: Foreign,
    raw: redis.Redis,
    keys: QueueKeys,
) -> None:
    foreign.waiting(b"1")
    raw.hset(keys.returns, b"1", 3)
    take(session)
    unreliable.loses = "replies"
    session.forgive()
    unreliable.loses = ""
    session.forgive()
    assert counts(raw) == {b"1": b"2"}


@pytest.mark.parametrize("lost", ["", "replies"])
def test_an_end_is_settled_if_nothing_can_be_taken(
    session: WorkSession,
    unreliable: Unreliable,
    foreign: Foreign,
    raw: redis.Redis,
    keys: QueueKeys,
    lost: str,
) -> None:
    foreign.waiting(b"1")
    (job,) = take(session)
    unreliable.loses = lost
    if lost:
        assert session.exchange([(job, Done())]).error
    unreliable.loses = ""
    raw.hset(keys.item(b"2"), "field", "value")
    raw.lpush(keys.main, b"2")
    result = session.exchange([] if lost else [(job, Done())], take=1)
    assert [ended.fate for ended in result.ended] == [Fate.COMPLETED]
    assert isinstance(result.error, WrongType)
    assert session.unsettled == 0
    assert raw.dbsize() == 2


def _leave_a_result(raw: redis.Redis, keys: QueueKeys) -> None:
    raw.hset(keys.result(b"1"), mapping={"status": "completed", "completed_ms": 1})


def _leave_traces(raw: redis.Redis, keys: QueueKeys) -> None:
    raw.zadd(keys.buried, {b"1": 1})
    raw.zadd(keys.delayed, {b"1": 32_000_000_000_000})
    raw.lpush(keys.cleaning, b"1")
    raw.hset(keys.returns, b"1", 3)


@pytest.mark.parametrize("leave", [_leave_a_result, _leave_traces])
def test_a_call_that_also_takes_completes_as_others(
    session: WorkSession,
    foreign: Foreign,
    raw: redis.Redis,
    keys: QueueKeys,
    leave: Callable[[redis.Redis, QueueKeys], None],
) -> None:
    foreign.waiting(b"1", b"2")
    (job,) = take(session)
    leave(raw, keys)
    result = session.exchange([(job, Done())], take=1)
    assert [ended.fate for ended in result.ended] == [Fate.COMPLETED]
    finish(session, result.jobs[0], Done())
    assert contents(raw) == {}


@pytest.mark.parametrize("lose", [*(lose for _, lose in _CASES), _take_away])
def test_a_call_that_also_takes_completes_only_held(
    session: WorkSession,
    foreign: Foreign,
    raw: redis.Redis,
    keys: QueueKeys,
    lose: Callable[[redis.Redis, QueueKeys], None],
) -> None:
    foreign.waiting(b"1")
    (job,) = take(session)
    lose(raw, keys)
    data = raw.get(keys.item(b"1"))
    result = session.exchange([(job, Done())], take=1)
    assert [ended.fate for ended in result.ended] == [Fate.LOST]
    assert raw.get(keys.item(b"1")) == data


def test_items_are_taken_even_if_an_end_is_refused(
    session: WorkSession, unreliable: Unreliable, foreign: Foreign
) -> None:
    foreign.waiting(b"1", b"2")
    (job,) = take(session)
    unreliable.refused = {0: OutOfMemory("it is full")}
    result = session.exchange([(job, Failure(b""))], take=1)
    assert [job.item_id for job in result.jobs] == [b"2"]
    assert (list(result.ended), isinstance(result.error, OutOfMemory)) == ([], True)
    assert session.held.running == result.jobs


def test_a_job_ends_once(session: WorkSession, unreliable: Unreliable, foreign: Foreign) -> None:
    foreign.waiting(b"1")
    (job,) = take(session)
    unreliable.loses = "calls"
    session.exchange([(job, Done())])
    unreliable.loses = ""
    result = session.exchange([(job, PutBack())])
    assert [(ended.end, ended.fate) for ended in result.ended] == [(Done(), Fate.COMPLETED)]


def test_an_interrupted_exchange_is_in_doubt(
    session: WorkSession, foreign: Foreign, monkeypatch: pytest.MonkeyPatch
) -> None:
    foreign.waiting(b"1", b"2")
    (job,) = take(session)
    call_all = Unreliable.call_all

    def interrupt(*args: Any, **options: Any) -> Any:
        call_all(*args, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(Unreliable, "call_all", interrupt)
    with pytest.raises(KeyboardInterrupt):
        session.exchange([(job, Done())], take=1)
    monkeypatch.undo()
    result = session.exchange(take=1)
    assert [ended.fate for ended in result.ended] == [Fate.COMPLETED]
    assert [job.item_id for job in result.jobs] == [b"2"]


def test_all_jobs_can_be_put_back_in_their_order(
    session: WorkSession, foreign: Foreign, raw: redis.Redis, keys: QueueKeys
) -> None:
    foreign.waiting(b"1", b"2", b"3", b"4")
    jobs = [take(session, 1)[0], *take(session, 2)]
    result = session.exchange([(job, PutBack(front=True)) for job in session.held.running])
    assert [ended.fate for ended in result.ended] == [Fate.RELEASED] * 3
    assert session.held.running == []
    assert raw.lrange(keys.main, 0, -1) == [b"4", b"3", b"2", b"1"]
    assert counts(raw) == {}
    assert finish(session, jobs[0], Done()) is Fate.LOST


# Waiting.


@pytest.fixture
def live_session(backend: Backend) -> Iterator[WorkSession]:
    """A session on the system's clock."""
    with WorkSession([WorkQueue(backend.connect(), QUEUE, holder=HOLDER)]) as session:
        yield session


@pytest.fixture
def looks_often(monkeypatch: pytest.MonkeyPatch) -> float:
    """A second, of which there are many: how often sessions look for work, seconds."""
    monkeypatch.setattr("rwq_cli.core.work.idle.LOOK_EVERY_S", 0.2)
    return 0.2


Later = Callable[[Callable[[], object]], None]


@pytest.fixture
def later() -> Iterator[Later]:
    """Does something a moment later; the test does not end before."""
    timers: list[threading.Timer] = []

    def start(act: Callable[[], object]) -> None:
        timers.append(threading.Timer(0.1, act))
        timers[-1].start()

    yield start
    for timer in timers:
        timer.join()


def test_a_wait_ends_when_an_item_falls_due(
    live_session: WorkSession, foreign: Foreign, queue: WorkQueue
) -> None:
    foreign.delayed(b"1", queue.now_ms() + 300)
    foreign.delayed(b"2", queue.now_ms() + 10_000_000)
    assert take(live_session) == []
    while not live_session.wait_for_work(60):
        pass
    assert [job.item_id for job in take(live_session)] == [b"1"]


def test_a_wait_notices_an_item_delayed_meanwhile(
    live_session: WorkSession, foreign: Foreign, queue: WorkQueue, looks_often: float, later: Later
) -> None:
    assert take(live_session) == []
    later(lambda: foreign.delayed(b"1", queue.now_ms() + round(looks_often * 1000)))
    assert live_session.wait_for_work(60)
    assert [job.item_id for job in take(live_session)] == [b"1"]


def test_a_wait_is_woken_even_before_it_begins(live_session: WorkSession, later: Later) -> None:
    live_session.waiter.wake()
    assert not live_session.wait_for_work(60)
    later(live_session.waiter.wake)
    assert not live_session.wait_for_work(60)
    live_session.waiter.wake()
    live_session.waiter.pause(60)


def test_a_wait_that_lost_its_link_can_be_repeated(
    live_session: WorkSession, foreign: Foreign, raw: redis.Redis, later: Later
) -> None:
    later(lambda: raw.client_kill_filter(_type="normal", skipme=True))
    assert live_session.wait_for_work(60)
    later(lambda: foreign.waiting(b"1"))
    assert live_session.wait_for_work(60)


@pytest.mark.usefixtures("looks_often")
def test_an_item_in_any_of_many_queues_is_found(backend: Backend, raw: redis.Redis) -> None:
    connection = backend.connect()
    queues = [WorkQueue(connection, b"q%d" % number) for number in range(50)]
    with WorkSession(queues) as session:
        Foreign(raw, b"q49").waiting(b"1")
        Foreign(raw, b"q17").delayed(b"2", 1_700_000_000_000)
        assert session.wait_for_work(60)
        found = [*take(session, 9), *take(session, 9)]
        assert [(job.queue, job.item_id) for job in found] == [(b"q17", b"2"), (b"q49", b"1")]


def test_a_result_that_cannot_be_kept_is_given_up(
    queue: WorkQueue, raw: redis.Redis, foreign: Foreign
) -> None:
    """The others of its call are completed, and the error of another queue is reported."""
    foreign.waiting(b"a", b"b", b"c")
    other = Foreign(raw, b"other")
    with WorkSession([queue, queue.sibling(b"other")], lease_s=LEASE_S) as session:
        jobs = session.exchange(take=3).jobs
        raw.set(queue.keys.result(b"b"), b"theirs")
        other.raw.hset(other.keys.item(b"h"), "field", "value")
        other.raw.lpush(other.keys.main, b"h")
        result = session.exchange([(job, Done(b"same")) for job in jobs], take=1)
        assert isinstance(result.error, WrongType)
        assert {ended.job.item_id: ended.fate for ended in result.ended} == {
            b"a": Fate.COMPLETED,
            b"b": Fate.BURIED,
            b"c": Fate.COMPLETED,
        }
        assert session.unsettled == 0
