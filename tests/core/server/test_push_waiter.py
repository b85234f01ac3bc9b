"""Waiting for a push: it pops nothing and leaves nothing behind."""

import time
from threading import Timer

import pytest
import redis

from rwq_cli.core import Connection, Server, connect
from rwq_cli.core.errors import ConnectionLost, PermissionDenied, ServerError, WrongType
from rwq_cli.core.server.link import Link
from rwq_cli.core.server.push_waiter import PushWaiter
from tests.conftest import AsUser, StartServer, contents
from tests.driver import TIMEOUT_S, until

LISTS = [b"a:queue", b"b:queue", b"c:queue"]


def blocked(raw: redis.Redis) -> int:
    count: int = raw.info("clients")["blocked_clients"]
    return count


def ends_early(waiter: PushWaiter) -> bool:
    """Whether a wait ends before its time, which is long enough for the slowest machine."""
    began = time.monotonic()
    waiter.wait(TIMEOUT_S)
    return time.monotonic() - began < TIMEOUT_S


def test_the_wait_lasts_as_long_as_asked(connection: Connection, raw: redis.Redis) -> None:
    with PushWaiter(dict.fromkeys(LISTS, connection)) as waiter:
        began = time.monotonic()
        waiter.wait(0.05)
        assert time.monotonic() - began >= 0.05
        until(lambda: blocked(raw) == 3)
    assert contents(raw) == {}


@pytest.mark.parametrize("pushed", LISTS)
def test_a_push_onto_any_list_ends_the_wait(
    connection: Connection, raw: redis.Redis, pushed: bytes
) -> None:
    with PushWaiter(dict.fromkeys(LISTS, connection)) as waiter:
        waiter.wait(0.01)
        timer = Timer(0.05, raw.lpush, (pushed, b"1", b"2", b"3"))
        timer.start()
        assert ends_early(waiter)
        timer.join()
        assert contents(raw) == {pushed: [b"3", b"2", b"1"]}


def test_an_existing_entry_ends_the_wait(connection: Connection, raw: redis.Redis) -> None:
    raw.lpush(b"c:queue", b"1")
    with PushWaiter(dict.fromkeys(LISTS, connection)) as waiter:
        assert ends_early(waiter)
        assert ends_early(waiter)
    assert contents(raw) == {b"c:queue": [b"1"]}


def test_only_answered_commands_are_sent_again(
    connection: Connection, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bytes] = []
    send = Link.send

    def noted(link: Link, packed: bytes) -> None:
        sent.extend(key for key in LISTS if packed.count(key) == 2)
        send(link, packed)

    monkeypatch.setattr(Link, "send", noted)
    with PushWaiter(dict.fromkeys(LISTS, connection)) as waiter:
        for _ in range(5):
            waiter.wait(0.005)
        until(lambda: blocked(raw) == 3)
        assert sent == LISTS
        raw.lpush(b"b:queue", b"1")
        waiter.wait(TIMEOUT_S)
        assert (sent, blocked(raw)) == (LISTS, 2)
        raw.delete(b"b:queue")
        waiter.wait(0.01)
        until(lambda: blocked(raw) == 3)
        assert sent == [*LISTS, b"b:queue"]


def test_the_connection_stays_free(connection: Connection) -> None:
    with PushWaiter(dict.fromkeys(LISTS, connection)) as waiter:
        waiter.wait(0.01)
        assert connection.call("PING") in (True, b"PONG")


def test_an_interrupt_leaves_no_client(connection: Connection, raw: redis.Redis) -> None:
    connection.call("PING")
    before = len(raw.client_list())

    def interrupted() -> None:
        with PushWaiter(dict.fromkeys(LISTS, connection)) as waiter:
            waiter.wait(0.01)
            connection.call("PING")
            assert len(raw.client_list()) == before + 3
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    until(lambda: len(raw.client_list()) == before)
    assert blocked(raw) == 0
    assert connection.call("PING") in (True, b"PONG")


def test_without_a_wait_there_is_no_connection(connection: Connection, raw: redis.Redis) -> None:
    before = len(raw.client_list())
    with PushWaiter(dict.fromkeys(LISTS, connection)):
        assert len(raw.client_list()) == before


def test_a_lost_server_is_an_error(start_server: StartServer) -> None:
    private = start_server()
    with PushWaiter(dict.fromkeys(LISTS, connect(Server(private.url)))) as waiter:
        waiter.wait(0.01)
        private.kill()
        with pytest.raises(ConnectionLost):
            waiter.wait(TIMEOUT_S)


def test_a_lost_connection_is_an_error(connection: Connection, raw: redis.Redis) -> None:
    with PushWaiter(dict.fromkeys(LISTS, connection)) as waiter:
        waiter.wait(0.01)
        raw.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        with pytest.raises(ConnectionLost):
            waiter.wait(TIMEOUT_S)


def test_a_server_without_free_clients_is_an_error(start_server: StartServer) -> None:
    private = start_server("--maxclients", "2")
    connection = connect(Server(private.url))
    connection.call("PING")
    with PushWaiter(dict.fromkeys(LISTS, connection)) as waiter, pytest.raises(ServerError):
        waiter.wait(TIMEOUT_S)
    assert connection.call("PING") in (True, b"PONG")


def test_a_denied_blmove_is_an_error(as_user: AsUser) -> None:
    limited = as_user("+@all", "-blmove")
    with PushWaiter(dict.fromkeys(LISTS, limited)) as waiter, pytest.raises(PermissionDenied):
        waiter.wait(TIMEOUT_S)


def test_a_key_of_another_type_is_named(connection: Connection, raw: redis.Redis) -> None:
    raw.set(b"b:queue", b"text")
    with PushWaiter(dict.fromkeys(LISTS, connection)) as waiter, pytest.raises(WrongType) as caught:
        waiter.wait(TIMEOUT_S)
    assert caught.value.message == "b:queue has the wrong type"
