"""Waiting for a push: it pops nothing and leaves nothing behind."""

import time
from collections.abc import Iterator
from threading import Timer

import pytest
import redis

from rwq_cli.core import Connection, Server, connect
from rwq_cli.core.errors import ConnectionLost, PermissionDenied, ServerError, WrongType
from rwq_cli.core.server.link import Link
from rwq_cli.core.server.push_waiter import PushWaiter
from tests.conftest import AsUser, StartServer, contents
from tests.servers import PrivateServer

LISTS = [b"a:queue", b"b:queue", b"c:queue"]


@pytest.fixture
def raw(server: PrivateServer) -> Iterator[redis.Redis]:
    with server.client() as client:
        client.flushall()
        yield client


@pytest.fixture
def connection(server: PrivateServer) -> Iterator[Connection]:
    made = connect(Server(server.url))
    yield made
    made.close()


def blocked(raw: redis.Redis) -> int:
    count: int = raw.info("clients")["blocked_clients"]
    return count


def seconds_of(waiter: PushWaiter, seconds: float) -> float:
    began = time.monotonic()
    waiter.wait(seconds)
    return time.monotonic() - began


def test_the_time_is_over(connection: Connection, raw: redis.Redis) -> None:
    with PushWaiter(connection, LISTS) as waiter:
        assert 0.05 <= seconds_of(waiter, 0.05) < 0.5
        assert blocked(raw) == 3
    assert contents(raw) == {}


@pytest.mark.parametrize("pushed", LISTS)
def test_a_push_onto_any_ends_it_and_stays(
    connection: Connection, raw: redis.Redis, pushed: bytes
) -> None:
    with PushWaiter(connection, LISTS) as waiter:
        waiter.wait(0.01)
        timer = Timer(0.05, raw.lpush, (pushed, b"1", b"2", b"3"))
        timer.start()
        assert seconds_of(waiter, 5) < 1
        timer.join()
        assert contents(raw) == {pushed: [b"3", b"2", b"1"]}


def test_an_entry_that_is_there_already(connection: Connection, raw: redis.Redis) -> None:
    raw.lpush(b"c:queue", b"1")
    with PushWaiter(connection, LISTS) as waiter:
        assert seconds_of(waiter, 5) < 1
        assert seconds_of(waiter, 5) < 1
    assert contents(raw) == {b"c:queue": [b"1"]}


def test_only_what_was_answered_is_sent_again(
    connection: Connection, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bytes] = []
    send = Link.send

    def noted(link: Link, packed: bytes) -> None:
        sent.extend(key for key in LISTS if packed.count(key) == 2)
        send(link, packed)

    monkeypatch.setattr(Link, "send", noted)
    with PushWaiter(connection, LISTS) as waiter:
        for _ in range(5):
            waiter.wait(0.005)
        assert (sent, blocked(raw)) == (LISTS, 3)
        raw.lpush(b"b:queue", b"1")
        waiter.wait(5)
        assert (sent, blocked(raw)) == (LISTS, 2)
        raw.delete(b"b:queue")
        waiter.wait(0.01)
        assert (sent, blocked(raw)) == ([*LISTS, b"b:queue"], 3)


def test_its_own_connection_stays_free(connection: Connection) -> None:
    with PushWaiter(connection, LISTS) as waiter:
        waiter.wait(0.01)
        assert connection.call("PING") in (True, b"PONG")


def test_nothing_is_left_behind(connection: Connection, raw: redis.Redis) -> None:
    connection.call("PING")
    before = len(raw.client_list())

    def interrupted() -> None:
        with PushWaiter(connection, LISTS) as waiter:
            waiter.wait(0.01)
            connection.call("PING")
            assert len(raw.client_list()) == before + 3
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    deadline = time.monotonic() + 5
    while len(raw.client_list()) > before:
        assert time.monotonic() < deadline
    assert blocked(raw) == 0
    assert connection.call("PING") in (True, b"PONG")


def test_without_a_wait_there_is_no_connection(connection: Connection, raw: redis.Redis) -> None:
    before = len(raw.client_list())
    with PushWaiter(connection, LISTS):
        assert len(raw.client_list()) == before


def test_the_server_is_lost(start_server: StartServer) -> None:
    private = start_server()
    with PushWaiter(connect(Server(private.url)), LISTS) as waiter:
        waiter.wait(0.01)
        private.kill()
        with pytest.raises(ConnectionLost):
            waiter.wait(5)


def test_one_connection_is_lost(connection: Connection, raw: redis.Redis) -> None:
    with PushWaiter(connection, LISTS) as waiter:
        waiter.wait(0.01)
        raw.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        with pytest.raises(ConnectionLost):
            waiter.wait(5)


def test_the_server_has_no_room_for_another(start_server: StartServer) -> None:
    private = start_server("--maxclients", "2")
    connection = connect(Server(private.url))
    connection.call("PING")
    with PushWaiter(connection, LISTS) as waiter, pytest.raises(ServerError):
        waiter.wait(5)
    assert connection.call("PING") in (True, b"PONG")


def test_a_user_who_may_not(as_user: AsUser) -> None:
    limited = as_user("+@all", "-blmove")
    with PushWaiter(limited, LISTS) as waiter, pytest.raises(PermissionDenied):
        waiter.wait(5)


def test_a_key_of_another_type_is_named(connection: Connection, raw: redis.Redis) -> None:
    raw.set(b"b:queue", b"text")
    with PushWaiter(connection, LISTS) as waiter, pytest.raises(WrongType) as caught:
        waiter.wait(5)
    assert caught.value.message == "b:queue holds another type than the protocol says"
