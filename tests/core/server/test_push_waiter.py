"""Waiting for a push: it pops nothing and leaves nothing behind."""

import random
import time
from contextlib import closing

import pytest
import redis

from rwq_cli.core import Connection
from rwq_cli.core.errors import WrongType
from rwq_cli.core.server.push_waiter import PushWaiter
from tests.conftest import AsUser
from tests.driver import TIMEOUT_S, until

LISTS = [b"a:queue", b"b:queue", b"c:queue"]


def blocked(raw: redis.Redis) -> int:
    count: int = raw.info("clients")["blocked_clients"]
    return count


def test_an_interrupt_leaves_no_client(connection: Connection, raw: redis.Redis) -> None:
    connection.call("PING")
    # Those of an earlier test may be closed meanwhile.
    before = {client["id"] for client in raw.client_list()}

    def new() -> int:
        return len({client["id"] for client in raw.client_list()} - before)

    def interrupted() -> None:
        with closing(PushWaiter(dict.fromkeys(LISTS, connection))) as waiter:
            waiter.wait(0.01)
            connection.call("PING")
            assert new() == 3
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    # The first watches on the link that there was, so that the PING opened one.
    until(lambda: new() == 1)
    assert blocked(raw) == 0
    assert connection.call("PING") in (True, b"PONG")


def test_a_fruitless_wake_is_followed_by_a_pause(
    connection: Connection, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw.lpush(b"a:queue", b"1")
    draws = []
    monkeypatch.setattr(random, "uniform", lambda *ends: draws.append(ends) or 0.03 * ends[1])
    with closing(PushWaiter({b"a:queue": connection})) as waiter:
        assert waiter.wait(TIMEOUT_S)
        began = time.monotonic()
        assert waiter.wait(TIMEOUT_S, was_fruitless=True)
        assert 0.3 <= time.monotonic() - began < 1.3
        # What somebody found ends the pauses.
        draws.clear()
        assert waiter.wait(TIMEOUT_S)
        assert draws == []


def test_a_lost_connection_is_opened_again(connection: Connection, raw: redis.Redis) -> None:
    with closing(PushWaiter({b"a:queue": connection})) as waiter:
        waiter.wait(0.01)
        raw.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        # There may be an entry: the caller looks.
        assert waiter.wait(TIMEOUT_S)
        assert not waiter.wait(0.01)
        until(lambda: blocked(raw) == 1)


def test_denied_blmove_means_polling_told_once(
    as_user: AsUser,
) -> None:
    limited, told = as_user("+@all", "-blmove"), []
    limited.on_wait = told.append
    for waits in (1, 2):
        with closing(PushWaiter(dict.fromkeys(LISTS, limited))) as waiter:
            began = time.monotonic()
            assert [waiter.wait(TIMEOUT_S) for _ in range(waits)] == [False] * waits
    assert 0.9 < time.monotonic() - began < TIMEOUT_S
    assert [line.split(": ")[:2] for line in told] == [["rwq", "looking for items once a second"]]


def test_a_key_of_another_type_is_named(connection: Connection, raw: redis.Redis) -> None:
    raw.set(b"b:queue", b"text")
    with (
        closing(PushWaiter(dict.fromkeys(LISTS, connection))) as waiter,
        pytest.raises(WrongType) as caught,
    ):
        waiter.wait(TIMEOUT_S)
    assert caught.value.message == "b:queue has the wrong type"
