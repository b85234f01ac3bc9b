"""Sending commands, links and their modes, and the ways in which a server cannot be reached."""

import os
import re
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count, repeat
from pathlib import Path
from threading import Barrier

import pytest
import redis

from rwq_cli import core
from rwq_cli.core import Connection, Server, WorkQueue, connect
from rwq_cli.core.errors import ConnectionLost, InvalidArgument, Unreachable, WrongType
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.cursor import page_entries
from rwq_cli.core.server import endpoint, link as link_module
from rwq_cli.core.server.commands import ScriptCommand, writes
from tests.conftest import AsUser, Foreign, StartServer, supports_no_touch
from tests.proxies import VirtualAddress, answering
from tests.servers import PrivateServer
from tests.tls import tls_front

ALL_CLIENTS = ("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


@pytest.mark.parametrize("atomic", [False, True])
def test_several_commands_in_order(connection: Connection, raw: redis.Redis, atomic: bool) -> None:
    raw.set(b"text", b"")
    commands = [
        ("SET", b"key\x00", b"value\xff"),
        ("LLEN", b"text"),
        ("RPUSH", b"list", b"a", b"b"),
        ("LRANGE", b"list", 0, -1),
    ]
    with pytest.raises(WrongType, match="text has the wrong type"):
        connection.call_all(commands, atomic=atomic)
    raw.delete(b"list")
    first, second, *rest = connection.call_all(commands, atomic=atomic, return_errors=True)
    assert (first, type(second), rest) == (True, WrongType, [2, [b"a", b"b"]])
    assert raw.get(b"key\x00") == b"value\xff"
    assert connect(Server("unix:///no/such/socket")).call_all(iter(()), atomic=atomic) == []


class TestNoTouch:
    def test_it_is_set_if_the_server_and_the_user_can(
        self, connection: Connection, raw: redis.Redis, as_user: AsUser
    ) -> None:
        assert [connection.set_no_touch() for _ in range(2)] == [supports_no_touch(raw)] * 2
        limited = as_user("+@all", "-client")
        assert limited.set_no_touch() is False
        assert limited.call("PING") is True

    @pytest.mark.needs("no-touch")
    @pytest.mark.parametrize("asked_first", [True, False])
    def test_every_link_has_it(
        self, connection: Connection, raw: redis.Redis, foreign: Foreign, asked_first: bool
    ) -> None:
        """Calls sent ahead hold one link while reads go over others; some were open before."""
        foreign.data(b"old")
        foreign.unused_for(b"old", 1000)
        if asked_first:
            assert connection.set_no_touch()
        with connection.lend(writes=True):
            assert connection.set_no_touch()
            with connection.lend(writes=True):
                connection.call("GET", b"jobs:item:old")
            connection.call("GET", b"jobs:item:old")
        connection.call("GET", b"jobs:item:old")
        # A dashboard runs for days, and connects again.
        raw.execute_command(*ALL_CLIENTS)
        connection.call("GET", b"jobs:item:old")
        assert raw.object("IDLETIME", b"jobs:item:old") >= 1000


def test_an_idle_link_of_a_user_who_may_not_ping(
    as_user: AsUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "PING_AFTER_S", 0.01)
    limited = as_user("+@all", "-ping", "+client|id")
    first = limited.call("CLIENT", "ID")
    time.sleep(0.02)
    assert limited.call("CLIENT", "ID") == first


class TestUnreachable:
    @pytest.mark.parametrize("call", [lambda c: c.call("PING"), Connection.set_no_touch])
    def test_a_missing_socket(self, call: Callable[[Connection], object]) -> None:
        with pytest.raises(Unreachable) as caught:
            call(connect(Server("unix://user:secret@/no/socket")))
        error = caught.value
        assert error.message == "cannot reach unix://user:***@/no/socket: no such file or directory"
        assert error.hint == "check -u or RWQ_URL, and that the server runs"
        assert error.code == "unreachable"

    @pytest.mark.parametrize(
        "url", ["unix:///tmp", f"unix:///tmp/{'x' * 200}", "unix:///tmp/a%00b", "redis://a..b"]
    )
    def test_an_address_that_nothing_can_have(self, url: str) -> None:
        with pytest.raises(Unreachable):
            connect(Server(url)).call("PING")

    def test_a_server_that_has_died(self, start_server: StartServer) -> None:
        private = start_server()
        queue = WorkQueue(connect(Server(private.url)), "jobs")
        queue.add(b"data", b"1")
        private.kill()
        with pytest.raises((ConnectionLost, Unreachable)):
            queue.add(b"data", b"2")
        with pytest.raises(Unreachable) as caught:
            queue.add(b"data", b"2")
        assert caught.value.message == f"cannot reach {private.url}: connection refused"

    def test_a_tls_server_whose_authority_is_unknown(
        self, server: PrivateServer, tmp_path: Path
    ) -> None:
        with tls_front(server.socket, tmp_path) as url, pytest.raises(Unreachable) as caught:
            connect(Server(url)).call("PING")
        said = "its certificate is not signed by a known authority"
        assert caught.value.message == f"cannot reach {url}: {said}"
        assert caught.value.hint == "give the certificate of its authority with --tls-ca"

    def test_looking_a_name_up_is_part_of_connecting(self, monkeypatch: pytest.MonkeyPatch) -> None:
        go_on = threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: go_on.wait(30))
        connection = connect(Server("redis://db.example:6379", connect_timeout_s=0.05))
        try:
            with pytest.raises(Unreachable, match=r"did not answer within 0\.05 s"):
                connection.call("PING")
        finally:
            go_on.set()


class TestSilence:
    READS: tuple[Callable[[Connection], object], ...] = (
        lambda connection: connection.call("GET", b"key"),
        lambda connection: connection.call_all([("LLEN", b"key"), ("TIME",)], atomic=True),
        lambda connection: connection.call_all([ScriptCommand("states", [b"key"], [])]),
        # What is sent first changes nothing.
        lambda connection: connection.set_no_touch(),
    )
    WRITES: tuple[Callable[[Connection], object], ...] = (
        lambda connection: connection.call_all([("LLEN", b"key"), ("DEL", b"key")]),
        lambda connection: connection.call_all([ScriptCommand("complete", [b"key"], [])]),
        lambda connection: list(connection.stream([ScriptCommand("put", [b"key"], [b"id"])])),
    )

    @pytest.mark.parametrize(
        ("call", "hint"),
        [
            *zip(READS, repeat("try again in a moment")),
            *zip(WRITES, repeat("check what was done before you repeat it")),
        ],
    )
    def test_a_reply_that_does_not_come(
        self, call: Callable[[Connection], object], hint: str
    ) -> None:
        with answering(b"") as url, pytest.raises(ConnectionLost) as caught:
            call(connect(Server(url, reply_timeout_s=0.02)))
        assert caught.value.message == f"{url} did not answer within 0.02 s"
        assert (caught.value.hint, caught.value.in_doubt) == (hint, True)

    def test_the_password_has_the_rest_of_the_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        waits_s = []

        class Noting(socket.socket):
            def settimeout(self, seconds: float | None) -> None:
                waits_s.append(seconds)
                super().settimeout(seconds)

        monkeypatch.setattr(socket, "socket", Noting)
        with answering(b"") as url, pytest.raises(Unreachable):
            connect(Server(url, password="x", connect_timeout_s=0.3)).call("PING")
        assert all(seconds is None or 0.05 < seconds <= 0.3 for seconds in waits_s), waits_s

    def test_password_and_tls_are_part_of_connecting(self) -> None:
        with answering(b"") as url, pytest.raises(Unreachable) as caught:
            connect(Server(url, password="x", connect_timeout_s=0.05)).call("PING")
        assert caught.value.message == f"cannot reach {url}: it did not answer within 0.05 s"
        with answering(b"") as url, pytest.raises(Unreachable) as caught:
            connect(Server(url.replace("redis", "rediss"), connect_timeout_s=0.05)).call("PING")
        reason = "no TLS handshake within 0.05 s: it is busy, or it does not speak TLS"
        assert caught.value.message.endswith(f": {reason}")
        assert caught.value.hint == "use redis://, not rediss://, only if the server has no TLS"


@pytest.mark.parametrize(("step_s", "is_slow"), [(0.001, False), (0.1, True)])
def test_pages_are_larger_over_a_long_line(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, step_s: float, is_slow: bool
) -> None:
    monkeypatch.setattr(endpoint, "monotonic", count(100, step_s).__next__)
    connection.call("PING")
    assert page_entries(Queue(connection, "jobs")) == (25_000 if is_slow else 10_000)


def test_a_silently_dropped_link_is_found_by_a_ping(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "PING_AFTER_S", 1e-9)
    address = VirtualAddress(start_server().socket)
    try:
        connection = connect(Server(address.url))
        assert connection.call("ECHO", b"a") == b"a"
        address.forget()
        assert connection.call("ECHO", b"b") == b"b"
        assert address.accepted == 2
    finally:
        address.close()


def test_every_read_that_rwq_sends_is_known(raw: redis.Redis) -> None:
    """By what the server says of each command that stands in the core."""
    files = Path(core.__file__).parent.rglob("*.py")
    words = sorted({word for file in files for word in re.findall(r'"([A-Z]+)"', file.read_text())})
    raw.response_callbacks.clear()
    commands = dict(zip(words, raw.execute_command("COMMAND", "INFO", *words), strict=True))
    reads = {word for word, found in commands.items() if found and b"readonly" in found[2]}
    assert {"GETRANGE", "LRANGE"} <= reads
    assert {word for word in reads if writes((word,))} == set()


def work(queue: WorkQueue, name: int) -> None:
    """Read one's own replies, among all that are on their way."""
    for number in range(30):
        word = b"%d-%d" % (name, number)
        assert queue.call("ECHO", word) == word
        words = [b"%b-%d" % (word, n) for n in range(20)]
        asked = (("ECHO", each) for each in words)
        assert list(queue.connection.stream(asked, reads_only=True)) == words
        assert queue.add(word, word)


def test_eight_threads_and_three_forks(connection: Connection, raw: redis.Redis) -> None:
    queue = WorkQueue(connection, "jobs")
    queue.call("PING")
    together = Barrier(9)

    def run(name: int) -> None:
        together.wait()
        work(queue, name)

    with ThreadPoolExecutor(8) as threads:
        running = [threads.submit(run, name) for name in range(8)]
        # While the threads wait; the connection that the children inherit is open.
        children = []
        for name in range(10, 13):
            if (child := os.fork()) == 0:
                status = 1
                try:
                    work(queue, name)
                    status = 0
                finally:
                    os._exit(status)
            children.append(child)
        together.wait()
        for each in running:
            each.result()
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert raw.llen("jobs:queue") == 11 * 30
    assert queue.call("PING")


@pytest.mark.usefixtures("raw")
@pytest.mark.parametrize("protocol", [2, 3, None])
@pytest.mark.parametrize("wrap", [Connection, connect])
def test_a_client_of_redis_py_is_taken_as_it_is(
    server: PrivateServer, protocol: int | None, wrap: Callable[[redis.Redis], Connection]
) -> None:
    pool = redis.BlockingConnectionPool(
        connection_class=redis.UnixDomainSocketConnection,
        path=str(server.socket),
        max_connections=1,
        **({} if protocol is None else {"protocol": protocol}),
    )
    client = redis.Redis(connection_pool=pool)
    queue = WorkQueue(wrap(client), "jobs")
    assert queue.add("data", "1")
    assert queue.counts(deep=True).waiting == 1
    assert queue.bury(b"1")
    assert queue.counts(deep=True).buried == 1
    assert queue.complete(b"1")
    # With no more than the one connection, which the client can still use.
    assert client.ping()


def test_a_client_that_decodes_replies_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="decodes replies") as caught:
        Connection(redis.Redis(decode_responses=True))
    assert caught.value.hint == "make it without decode_responses"
