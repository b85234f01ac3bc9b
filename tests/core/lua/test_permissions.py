"""A script that is denied a command leaves nothing half done: no server rolls it back.

A script asks the server before it writes; before Redis 7 no server answers.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product

import pytest
import redis

from rwq_cli.core import Connection, Done, Failure, GiveUp, OnFail, PutBack, RetryPolicy, WorkQueue
from rwq_cli.core.batches import FEW_IDS
from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.work.job import JobEnd
from rwq_cli.core.work.session import WorkSession
from tests.broken_queues import make_broken
from tests.conftest import HOLDER, QUEUE, AsUser, FakeClock, Foreign, Interleaved
from tests.everything import everything
from tests.long import IS_LONG
from tests.verbs import HEAVIEST, OPERATIONS

pytestmark = pytest.mark.needs("acl-check")


Write = Callable[[WorkQueue, Sequence[bytes]], object]


def _work(end: JobEnd) -> Write:
    """Take some items, and end their jobs so."""

    def write(queue: WorkQueue, _ids: Sequence[bytes]) -> object:
        policy = RetryPolicy(retries=1, on_fail=OnFail.RELEASE)
        with WorkSession([queue], policy=policy) as session:
            turn = session.exchange(take=3)
            if turn.error is None:
                session.renew()
                turn = session.exchange((job, end) for job in turn.jobs)
            if turn.error is not None or session.outage is not None:
                raise turn.error or session.outage or AssertionError
            return [ended.fate for ended in turn.ended]

    return write


WRITES: dict[str, Write] = {
    **{name: lambda q, ids, run=verb.run: run(q, ids, False) for name, verb in OPERATIONS.items()},
    "complete a job": _work(Done()),
    "complete a job with a result": _work(Done(b"result")),
    "retry or release a job": _work(Failure(b"why")),
    "bury a job": _work(GiveUp(b"why")),
    "put a job back": _work(PutBack()),
}
READS = {
    *("GET", "MGET", "EXISTS", "TYPE", "TIME", "SCAN", "STRLEN", "PTTL", "LRANGE", "LLEN", "LPOS"),
    *("LINDEX", "XRANGE", "XREVRANGE"),
    *("ZRANGE", "ZSCORE", "ZMSCORE", "ZCARD", "ZSCAN"),
    *("HMGET", "HGETALL", "HGET", "HEXISTS", "HSCAN", "INFO"),
}
# What a connection needs to run a script or a transaction at all, or what the test itself sends.
NOT_OF_SCRIPTS = (
    *("multi", "discard", "ping", "evalsha", "eval", "client", "config", "info", "auth"),
    *("hello", "flushall"),
)


def make_queue(raw: redis.Redis, count: int) -> list[bytes]:
    raw.flushall(asynchronous=False)
    ids = [b"id-%d" % number for number in range(count)]
    keys = QueueKeys(QUEUE)
    # A lease ends at the first data of another type.
    make_broken(raw, keys, ids, 4, wrong_types=False)
    raw.hset(keys.result(ids[0]), mapping={"status": "completed", "completed_ms": 1})
    return ids


def reads_only(name: str) -> bool:
    """Whether a call of this name, or of these that are joined by `+`, cannot write."""
    return READS.issuperset(name.split("+"))


def queue_of(connection: Connection) -> WorkQueue:
    return WorkQueue(connection, QUEUE, holder=HOLDER, clock=FakeClock())


@pytest.mark.ci
@pytest.mark.parametrize(
    ("count", "name"),
    [
        *product([25], WRITES),
        # Of many the places are told.
        *product([2 * FEW_IDS], WRITES if IS_LONG else HEAVIEST),
    ],
)
def test_a_user_who_lacks_a_command_halves_no_step(
    connection: Connection, raw: redis.Redis, as_user: AsUser, name: str, count: int
) -> None:
    ids = make_queue(raw, count)
    raw.config_resetstat()
    WRITES[name](queue_of(connection), ids)
    used = {stat.removeprefix("cmdstat_") for stat in raw.info("commandstats")}
    commands = sorted(c for c in used if not c.startswith(NOT_OF_SCRIPTS))
    assert len(commands) > 3
    ids = make_queue(raw, count)
    arranged = everything(raw)
    denied: list[str] = []
    half_done: list[str] = []
    for command in commands:
        before = [arranged]
        limited = Interleaved(as_user("+@all", f"-{command}"))
        limited.before = lambda name, before=before: before.append(
            None if reads_only(name) else everything(raw)
        )
        try:
            WRITES[name](queue_of(limited), ids)
        except PermissionDenied:
            denied.append(command)
            # Of several calls, those before it are done.
            if before[-1] is not None and everything(raw) != before[-1]:
                half_done.append(command)
        if everything(raw) != arranged:
            make_queue(raw, count)
            arranged = everything(raw)
    assert half_done == [], name
    # No write is done without the permission for it.
    writes = [command for command in commands if command.upper() not in READS]
    assert set(denied) >= set(writes), name
    assert len(denied) > 2, name


@contextmanager
def refused(raw: redis.Redis, why: str | None = None) -> Iterator[None]:
    """Fail unless the block lacks a permission and changes nothing."""
    before = everything(raw)
    with pytest.raises(PermissionDenied, match=why):
        yield
    assert everything(raw) == before


@pytest.mark.parametrize("command", ["rpop", "lpush", "set"])
def test_a_lease_without_promotion_needs_all_it_does(
    raw: redis.Redis, foreign: Foreign, as_user: AsUser, command: str
) -> None:
    foreign.waiting(b"a", b"b")
    with refused(raw):
        list(queue_of(as_user("+@all", f"-{command}")).lease_many(2))


def test_the_keys_of_a_user_are_asked_for_too(raw: redis.Redis, as_user: AsUser) -> None:
    ids = make_queue(raw, 3)
    # Without the lease keys of 0.1.
    limited = as_user("+@all", keys=["jobs:[qpidbrc]*", "jobs:lease:*"])
    with refused(raw, "command on jobs:leased_by_session:"):
        list(queue_of(limited).bury_many(ids))
