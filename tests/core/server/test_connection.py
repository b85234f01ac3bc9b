"""Sending commands, and every way in which a server can refuse or be lost."""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha1
from math import inf
from pathlib import Path
from threading import Thread

import pytest
from redis import Redis
from redis.connection import UnixDomainSocketConnection

from rwq_cli import core
from rwq_cli.core import Connection, Server, WorkQueue, connect, lua
from rwq_cli.core.errors import (
    AuthenticationFailed,
    ConnectionLost,
    Unreachable,
    WrongType,
)
from rwq_cli.core.lua import load_script
from rwq_cli.core.server import endpoint
from rwq_cli.core.server.commands import ScriptCommand, script_writes, writes
from rwq_cli.core.server.patience import limited
from tests.conftest import QUEUE, AsUser, Foreign, StartServer, supports_no_touch
from tests.servers import PrivateServer
from tests.tls import tls_front


def queue_at(private: PrivateServer, **server: str) -> WorkQueue:
    return WorkQueue(connect(Server(private.url, **server)), QUEUE, holder=b"me")


def test_a_command_takes_and_returns_any_bytes(connection: Connection, raw: Redis) -> None:
    assert connection.call("SET", b"key\x00", b"value\xff") is True
    assert raw.get(b"key\x00") == b"value\xff"


def test_several_commands_in_order(connection: Connection) -> None:
    commands = [("RPUSH", b"list", b"a", b"b"), ("LLEN", b"list"), ("LRANGE", b"list", 0, -1)]
    assert connection.call_all(commands) == [2, 2, [b"a", b"b"]]
    assert connection.call_all(commands, atomic=True) == [4, 4, [b"a", b"b", b"a", b"b"]]


def test_no_commands_send_nothing() -> None:
    nowhere = connect(Server("unix:///no/such/socket"))
    assert nowhere.call_all([]) == []
    assert nowhere.call_all(iter(()), atomic=True) == []


@pytest.mark.parametrize("atomic", [False, True])
def test_an_error_among_several_commands(connection: Connection, raw: Redis, atomic: bool) -> None:
    raw.set(b"text", b"")
    commands = [("LLEN", b"text"), ("SET", b"after", b"1"), ("GET", b"after")]
    with pytest.raises(WrongType):
        connection.call_all(commands, atomic=atomic)
    first, *rest = connection.call_all(commands, atomic=atomic, return_errors=True)
    assert isinstance(first, WrongType)
    assert first.message == "text has the wrong type"
    assert rest == [True, b"1"]


def test_a_script_is_sent_where_the_server_has_lost_it(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    foreign.waiting(b"1", b"2", b"3")
    for expected in (b"1", b"2", b"3"):
        raw.script_flush()
        item = queue.lease()
        assert item is not None
        assert item.item_id == expected


def test_a_script_among_several_commands(queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
    foreign.waiting(b"1", b"2")
    known = {"in_main": 1, "in_processing": 0, "digests_too": False}
    states = queue.script("states", b"1", b"2", **known)
    commands = [("SET", b"key", b"1"), states, ("GET", b"key")]
    for _ in range(2):
        raw.script_flush()
        assert queue.call_all(commands) == [True, [b"ww", b""], b"1"]
        # The server has it now.
        assert queue.call_all(commands) == [True, [b"ww", b""], b"1"]
    raw.set(queue.keys.buried, b"")
    _, refusal, after = queue.call_all(commands, return_errors=True)
    assert (type(refusal), after) == (WrongType, b"1")


def test_a_script_that_the_server_has_loaded_is_not_sent_again(
    queue: WorkQueue, raw: Redis
) -> None:
    raw.script_flush()
    raw.config_resetstat()
    for _ in range(3):
        queue.lease()
    for number in range(3):
        queue.add(b"", b"%d" % number)
    stats = raw.info("commandstats")
    assert stats["cmdstat_eval"]["calls"] == 2
    assert stats["cmdstat_evalsha"]["calls"] == 4
    for name in ("lease", "add"):
        text = load_script(name).text
        assert raw.script_exists(sha1(text.encode()).hexdigest()) == [True]


def test_no_touch_is_set_if_the_server_supports_it(connection: Connection, raw: Redis) -> None:
    for _ in range(2):
        assert connection.set_no_touch() is supports_no_touch(raw)


def test_a_user_who_may_not_set_no_touch_can_still_send_commands(as_user: AsUser) -> None:
    made = as_user("+@all", "-client")
    assert made.set_no_touch() is False
    assert made.call("PING") is True


def mode_of(connection: Connection) -> str:
    """The flags of the link that the next command takes; T is for no-touch."""
    pairs = connection.call("CLIENT", "INFO").decode().split()
    return dict(pair.split("=", 1) for pair in pairs)["flags"]


@pytest.mark.needs("no-touch")
def test_no_touch_survives_a_reconnect(connection: Connection, raw: Redis) -> None:
    """A dashboard runs for days; after a reconnect it must not reset idle times either."""
    assert connection.set_no_touch()
    raw.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    assert "T" in mode_of(connection)


@pytest.mark.needs("no-touch")
@pytest.mark.parametrize("asked_first", [True, False])
def test_no_touch_is_set_on_every_link(
    connection: Connection, raw: Redis, foreign: Foreign, asked_first: bool
) -> None:
    """Calls sent ahead hold one link while reads go over a second one, and a third."""
    foreign.data(b"old")
    foreign.unused_for(b"old", 1000)
    if asked_first:
        assert connection.set_no_touch()
    with connection.lend(writes=True):
        assert connection.set_no_touch()
        with connection.lend(writes=True):
            assert connection.call("GET", b"jobs:item:old") == b"data of old"
        assert connection.call("GET", b"jobs:item:old") == b"data of old"
    assert connection.call("GET", b"jobs:item:old") == b"data of old"
    assert raw.object("IDLETIME", b"jobs:item:old") >= 1000


@pytest.mark.needs("no-touch")
def test_links_that_were_already_open_get_no_touch(connection: Connection) -> None:
    with connection.lend(writes=True):
        assert "T" not in mode_of(connection)
    assert connection.set_no_touch()
    with connection.lend(writes=True):
        assert "T" in mode_of(connection)
    assert "T" in mode_of(connection)


def test_a_closed_connection_opens_again(connection: Connection) -> None:
    connection.close()
    assert connection.call("PING") is True
    connection.close()


def test_a_missing_socket_is_unreachable() -> None:
    made = connect(Server("unix://user:secret@/no/such/socket"))
    with pytest.raises(Unreachable) as caught:
        made.call("PING")
    error = caught.value
    assert error.message == (
        "cannot reach unix://user:***@/no/such/socket: no such file or directory"
    )
    assert error.hint == "check -u or RWQ_URL, and that the server runs"
    assert error.code == "unreachable"


def test_a_refused_connection_is_unreachable() -> None:
    with socket.socket() as reserved:
        # Bound and not listening: nobody else can take the port meanwhile.
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        made = connect(Server(f"redis://127.0.0.1:{port}"))
        with pytest.raises(Unreachable) as caught:
            made.run("lease", [], [])
    assert caught.value.message == f"cannot reach redis://127.0.0.1:{port}: connection refused"


def test_a_server_that_has_died(start_server: StartServer) -> None:
    private = start_server()
    queue = queue_at(private)
    queue.add(b"data", b"1")
    private.kill()
    with pytest.raises((ConnectionLost, Unreachable)):
        queue.add(b"data", b"2")
    with pytest.raises(Unreachable) as caught:
        queue.add(b"data", b"2")
    assert caught.value.message == f"cannot reach {private.url}: connection refused"
    assert caught.value.acknowledged == 0


def test_a_server_that_hangs_up() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]

        def hang_up() -> None:
            accepted, _ = listening.accept()
            accepted.recv(1000)
            accepted.close()

        other = Thread(target=hang_up)
        other.start()
        with pytest.raises(ConnectionLost) as caught:
            connect(Server(f"redis://127.0.0.1:{port}")).call("DEL", "a")
        other.join()
    assert caught.value.message == (
        f"lost the connection to redis://127.0.0.1:{port}: connection closed by server"
    )
    assert caught.value.hint == "check what was done before you repeat it"
    assert caught.value.code == "connection-lost"


@contextmanager
def silent_server() -> Iterator[str]:
    """The URL of a server that accepts connections and says nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"redis://127.0.0.1:{listening.getsockname()[1]}"


def test_a_server_that_does_not_answer() -> None:
    with silent_server() as url, pytest.raises(ConnectionLost) as caught:
        connect(Server(url, reply_timeout_s=0.05)).call("DEL", "a")
    assert caught.value.message == f"{url} did not answer within 0.05 s"
    assert caught.value.hint == "check what was done before you repeat it"


def test_the_hint_of_a_call_that_only_reads_speaks_of_no_writes() -> None:
    calls: list[Callable[[Connection], object]] = [
        lambda connection: connection.call("GET", b"key"),
        lambda connection: connection.call_all([("LLEN", b"key"), ("TYPE", b"key")]),
        lambda connection: connection.call_all([("LLEN", b"key"), ("TIME",)], atomic=True),
        lambda connection: connection.call_all([ScriptCommand("states", [b"key"], [])]),
        lambda connection: connection.run("results", [b"key"], []),
        # What is sent first changes nothing.
        lambda connection: connection.set_no_touch(),
    ]
    for call in calls:
        with silent_server() as url, pytest.raises(ConnectionLost) as caught:
            call(connect(Server(url, reply_timeout_s=0.02)))
        assert caught.value.hint == "try again in a moment"
    writes: list[Callable[[Connection], object]] = [
        lambda connection: connection.call("DEL", b"key"),
        lambda connection: connection.call_all([("LLEN", b"key"), ("DEL", b"key")]),
        lambda connection: connection.run("remove", [b"key"], []),
        lambda connection: list(connection.run_each("release", [b"key"], [[b"id"]])),
    ]
    for call in writes:
        with silent_server() as url, pytest.raises(ConnectionLost) as caught:
            call(connect(Server(url, reply_timeout_s=0.02)))
        assert caught.value.hint == "check what was done before you repeat it"


def test_every_read_that_rwq_sends_is_known(raw: Redis) -> None:
    """By what the server says of each command that stands in the core."""
    files = Path(core.__file__).parent.rglob("*.py")
    words = sorted({word for file in files for word in re.findall(r'"([A-Z]+)"', file.read_text())})
    raw.response_callbacks.clear()
    commands = dict(zip(words, raw.execute_command("COMMAND", "INFO", *words), strict=True))
    reads = {word for word, found in commands.items() if found and b"readonly" in found[2]}
    assert {"GETRANGE", "LRANGE"} <= reads
    assert {word for word in reads if writes((word,))} == set()


def test_every_script_that_writes_is_known_to() -> None:
    """By what stands in it, with what it includes."""
    writing = {"SET", "DEL", "LPUSH", "RPUSH", "RPOP", "LREM", "ZADD", "ZREM", "HSET", "PEXPIRE"}
    for file in (Path(lua.__file__).parent / "ops").glob("*.lua"):
        found = set(re.findall(r"redis\.call\('([A-Z]+)'|for_all\('([A-Z]+)'", file.read_text()))
        if writing.intersection(word for pair in found for word in pair):
            assert script_writes(file.stem), file.stem


def test_the_password_is_part_of_connecting() -> None:
    with silent_server() as url, pytest.raises(Unreachable) as caught:
        connect(Server(url, password="x", connect_timeout_s=0.05)).call("PING")
    assert caught.value.message == f"cannot reach {url}: it did not answer within 0.05 s"


def test_a_server_that_says_nothing_to_a_tls_client() -> None:
    with silent_server() as url, pytest.raises(Unreachable) as caught:
        connect(Server(url.replace("redis", "rediss"), connect_timeout_s=0.05)).call("PING")
    reason = "no TLS handshake within 0.05 s: it is busy, or it does not speak TLS"
    assert caught.value.message.endswith(f": {reason}")
    assert caught.value.hint == "use redis://, not rediss://, only if the server has no TLS"


def test_a_tls_server_whose_authority_is_unknown(server: PrivateServer, tmp_path: Path) -> None:
    with tls_front(server.socket, tmp_path) as url, pytest.raises(Unreachable) as caught:
        connect(Server(url)).call("PING")
    assert caught.value.message.startswith(f"cannot reach {url}: certificate verify failed: self")
    assert caught.value.hint == "give its CA certificate with --tls-ca"


class TestDeadlines:
    @pytest.fixture(autouse=True)
    def short_grace(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(endpoint, "GRACE_S", 0.1)
        monkeypatch.setattr(endpoint, "READ_GRACE_S", 0.05)

    def test_a_read_has_a_shorter_grace_period(self) -> None:
        with silent_server() as url:
            connection = connect(Server(url))
            with connection.deadline(1e-9), pytest.raises(ConnectionLost) as caught:
                connection.call("GET", "a")
        assert caught.value.message == f"{url} did not answer within 0.05 s"

    def test_a_reply_is_not_waited_for_much_longer(self) -> None:
        with silent_server() as url:
            connection = connect(Server(url))
            with connection.deadline(1e-9), pytest.raises(ConnectionLost) as caught:
                connection.call("DEL", "a")
        assert caught.value.message == f"{url} did not answer within 0.1 s"

    def test_connecting_ends_near_the_deadline(self) -> None:
        with silent_server() as url:
            connection = connect(Server(url, password="x"))
            with connection.deadline(1e-9), pytest.raises(Unreachable) as caught:
                connection.call("DEL", "a")
        assert caught.value.message == f"cannot reach {url}: it did not answer within 0.1 s"

    def test_a_shorter_reply_timeout_holds(self) -> None:
        with silent_server() as url:
            connection = connect(Server(url, reply_timeout_s=0.05))
            with connection.deadline(60), pytest.raises(ConnectionLost) as caught:
                connection.call("PING")
        assert caught.value.message == f"{url} did not answer within 0.05 s"

    def test_the_earlier_of_two_holds_and_each_ends_with_its_block(self) -> None:
        connection = connect(Server("redis://host"))
        with connection.deadline(10_000):
            with connection.deadline(100_000):
                assert 5_000 < limited(inf) <= 10_000.3
            with connection.deadline(1000):
                assert 0.1 <= limited(inf) <= 1000.3
            with connection.deadline(0):
                assert 5_000 < limited(inf) <= 10_000.3
            assert 5_000 < limited(inf) <= 10_000.3
        for seconds in (0, inf):
            with connection.deadline(seconds):
                assert limited(60) == 60
        assert limited(60) == 60

    def test_a_server_that_answers_is_not_cut_short(self, connection: Connection) -> None:
        with connection.deadline(1e-9):
            assert connection.call("ECHO", b"a") == b"a"
        assert connection.call("ECHO", b"b") == b"b"


@pytest.mark.parametrize("path", ["/tmp", "/tmp/" + "x" * 200, "/tmp/a%00b"])
def test_a_socket_that_cannot_be_one(path: str) -> None:
    with pytest.raises(Unreachable):
        connect(Server(f"unix://{path}")).call("PING")


def test_a_host_that_cannot_be_one() -> None:
    with pytest.raises(Unreachable):
        connect(Server("redis://a..b")).call("PING")


@pytest.mark.parametrize(
    ("url", "password"),
    [
        ("unix://{socket}", None),
        ("unix://{socket}", "n0t-this-one"),
        ("unix://:n0t-this-one@{socket}", None),
        ("unix://nobody:s3cret@{socket}", None),
    ],
)
def test_a_wrong_password_is_an_error_that_hides_it(
    start_server: StartServer, url: str, password: str | None
) -> None:
    private = start_server("--requirepass", "s3cret", password="s3cret")
    made = connect(Server(url.format(socket=private.socket), password=password))
    with pytest.raises(AuthenticationFailed) as caught:
        made.call("PING")
    assert caught.value.hint == "give it in RWQ_PASSWORD or with --password-file"
    assert caught.value.code == "authentication-failed"
    for secret in ("n0t-this-one", "s3cret"):
        assert secret not in caught.value.message


def test_setting_no_touch_requires_the_password(start_server: StartServer) -> None:
    """It tolerates a server that does not know how, and nothing else."""
    private = start_server("--requirepass", "s3cret", password="s3cret")
    with pytest.raises(AuthenticationFailed):
        connect(Server(private.url, password="n0t-this-one")).set_no_touch()
    with pytest.raises(Unreachable):
        connect(Server("unix:///no/such/socket")).set_no_touch()


class TestConnectTimeout:
    """It limits looking up a name and connecting to all of its addresses."""

    def test_a_name_that_is_looked_up_for_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        go_on = threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: go_on.wait(30))
        connection = connect(Server("redis://db.example:6379", connect_timeout_s=0.05))
        try:
            with pytest.raises(Unreachable, match=r"did not answer within 0\.05 s"):
                connection.call("PING")
        finally:
            go_on.set()

    def test_a_link_that_came_too_late_is_not_used_again(
        self, server: PrivateServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        go_on = threading.Event()
        connection = connect(Server(server.url, connect_timeout_s=0.05))
        slow = UnixDomainSocketConnection._connect

        def late(raw: UnixDomainSocketConnection) -> socket.socket:
            go_on.wait(30)
            return slow(raw)

        with monkeypatch.context() as patch:
            patch.setattr(UnixDomainSocketConnection, "_connect", late)
            with pytest.raises(Unreachable):
                connection.call("PING")
        go_on.set()
        assert connection.call("PING") in (True, b"PONG")


def test_any_number_of_links_may_be_opened(connection: Connection) -> None:
    """A program that waits for weeks opens one for each wait; redis-py's pools make 100."""
    for _ in range(150):
        connection.take(writes=False).close()
