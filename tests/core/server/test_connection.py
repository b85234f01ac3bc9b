"""Sending commands, and every way in which a server can refuse or be lost."""

import select
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import sha1
from threading import Thread
from typing import Any

import pytest
import redis
from redis import Redis
from redis import exceptions as rx

from rwq_cli.core import Connection, NewItem, Server, ServerError, WorkQueue, connect
from rwq_cli.core.errors import (
    AuthenticationFailed,
    ConnectionLost,
    Loading,
    OutOfMemory,
    PermissionDenied,
    ReadOnly,
    Unreachable,
    WrongType,
)
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.lua import load_script, queue_args, queue_keys
from rwq_cli.core.server.connection import _SENT_AHEAD, REFUSED, Wire, translate
from tests.conftest import QUEUE, AsUser, Foreign, StartServer, contents, supports_no_touch
from tests.servers import PrivateServer


def queue_at(private: PrivateServer, **server: str) -> WorkQueue:
    return WorkQueue(connect(Server(private.url, **server)), QUEUE, holder=b"me")


# Everything that writes, on a queue that has something to do for each.
WRITES: list[tuple[str, Callable[[WorkQueue], object]]] = [
    ("add", lambda queue: queue.add(b"x" * 100, b"new")),
    ("add unique", lambda queue: queue.add_unique(b"x" * 100, b"new")),
    ("lease", lambda queue: queue.lease()),
    ("complete", lambda queue: list(queue.complete([b"waiting", b"leased"]))),
    ("complete as owner", lambda queue: list(queue.complete([b"leased"], owner=b"me"))),
    ("touch", lambda queue: list(queue.touch([b"leased"]))),
    ("release", lambda queue: list(queue.release([b"leased", b"orphaned"]))),
    ("release to the front", lambda queue: list(queue.release([b"leased"], front=True))),
    ("light clean", lambda queue: list(queue.light_clean(grace_s=0))),
    ("deep clean", lambda queue: list(queue.deep_clean(grace_s=0))),
]
DEEP_CLEAN = WRITES[-1][1]
each_write = pytest.mark.parametrize("write", [w for _, w in WRITES], ids=[n for n, _ in WRITES])


def fill(raw: Redis) -> None:
    foreign = Foreign(raw)
    foreign.waiting(b"waiting")
    foreign.leased(b"leased", holder=b"me")
    foreign.abandoned(b"abandoned")
    foreign.data(b"orphaned")


def test_one_command(connection: Connection, raw: Redis) -> None:
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
    assert isinstance(first, redis.ResponseError)
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


def add_args(*numbers: int) -> list[list[bytes]]:
    """Arguments for one call of `add` for each number, which adds the item of that name."""
    args = queue_args(QueueKeys(QUEUE))
    return [[*args, b"any", b"", b"%d" % number, b"data"] for number in numbers]


def run_each(connection: Connection, calls: Iterable[Any]) -> Iterator[Any]:
    return connection.run_each("add", queue_keys(QueueKeys(QUEUE)), calls)


def test_calls_that_are_sent_ahead_are_answered_in_order(
    connection: Connection, raw: Redis
) -> None:
    raw.set(b"jobs:item:2", b"old")
    raw.set(b"jobs:item:6", b"old")
    replies = list(run_each(connection, add_args(*range(8))))
    assert replies == [[], [], [0], [], [], [], [0], []]
    assert raw.lrange(b"jobs:queue", 0, -1) == [b"7", b"5", b"4", b"3", b"1", b"0"]


def test_no_calls_ahead(connection: Connection) -> None:
    assert list(run_each(connection, [])) == []
    assert list(run_each(connection, [None, None])) == []


def test_a_few_calls_are_made_ahead_of_their_replies(connection: Connection) -> None:
    made = 0

    def calls() -> Iterator[list[bytes]]:
        nonlocal made
        for args in add_args(*range(10)):
            made += 1
            yield args

    replies = run_each(connection, calls())
    assert made == 0
    for answered in range(1, 11):
        assert next(replies) == []
        assert made <= answered + 2


def test_a_pause_waits_for_all_replies(connection: Connection) -> None:
    answered: list[Any] = []
    answered_at_pause = []

    def calls() -> Iterator[list[bytes] | None]:
        for args in add_args(*range(4)):
            yield args
            yield None
            answered_at_pause.append(len(answered))

    for reply in run_each(connection, calls()):
        answered.append(reply)
    assert answered_at_pause == [1, 2, 3, 4]


@pytest.mark.parametrize("at", range(6))
def test_scripts_that_are_lost_while_calls_are_on_their_way(
    connection: Connection, raw: Redis, at: int
) -> None:
    def calls() -> Iterator[list[bytes]]:
        for number, args in enumerate(add_args(*range(6))):
            if number == at:
                raw.script_flush()
            yield args

    assert list(run_each(connection, calls())) == [[]] * 6
    assert raw.lrange(b"jobs:queue", 0, -1) == [b"%d" % number for number in range(5, -1, -1)]


def test_a_refusal_among_calls_that_were_sent_ahead(connection: Connection, raw: Redis) -> None:
    """What was answered before is told; the connection can be used afterwards."""
    answered: list[Any] = []

    def calls() -> Iterator[list[bytes]]:
        for number, args in enumerate(add_args(*range(10))):
            if number == 5:
                # All answered but the two that may be on their way.
                raw.set(b"jobs:delayed", b"text")
            yield args

    with pytest.raises(WrongType) as caught:
        answered.extend(run_each(connection, calls()))
    assert "jobs:delayed" in caught.value.message
    done = [reply for reply in answered if reply is not REFUSED]
    assert 3 <= len(done) <= 5
    # What was sent after the refused one was answered, too.
    assert answered == done + [REFUSED] * (len(answered) - len(done))
    assert raw.llen(b"jobs:queue") == len(done)
    assert connection.call("PING") is True
    raw.delete(b"jobs:delayed")
    assert list(run_each(connection, add_args(20, 21))) == [[], []]


def pushes(*numbers: int) -> list[list[tuple[Any, ...]]]:
    """A transaction for each number that sets a key of that name and pushes it."""
    return [[("SET", b"%d" % n, b"x"), ("LPUSH", b"list", b"%d" % n)] for n in numbers]


def test_transactions_that_are_sent_ahead_are_answered_in_order(
    connection: Connection, raw: Redis
) -> None:
    transactions = [*pushes(*range(4)), None, *pushes(4, 5)]
    assert [reply[-1] for reply in connection.transact_each(transactions)] == [1, 2, 3, 4, 5, 6]
    assert raw.lrange(b"list", 0, -1) == [b"5", b"4", b"3", b"2", b"1", b"0"]
    assert list(connection.transact_each([])) == []


def test_a_command_that_is_refused_before_exec_stops_its_whole_transaction(
    connection: Connection, raw: Redis
) -> None:
    """What was sent behind it runs; what was not sent yet does not."""
    transactions = [*pushes(0), [("SET", b"half", b"x"), ("LPUSH", b"list")], *pushes(*range(1, 9))]
    answered: list[Any] = []
    with pytest.raises(ServerError) as caught:
        answered.extend(connection.transact_each(transactions))
    assert "wrong number of arguments" in caught.value.message
    assert raw.get(b"half") is None
    done = [reply for reply in answered if reply is not REFUSED]
    assert raw.llen(b"list") == len(done) <= 1 + _SENT_AHEAD
    assert connection.call("PING") is True


def test_a_command_that_fails_in_exec(connection: Connection, raw: Redis) -> None:
    raw.set(b"list", b"text")
    with pytest.raises(WrongType):
        list(connection.transact_each(pushes(0)))
    # EXEC goes on to its end, whatever fails in it.
    assert raw.get(b"0") == b"x"
    assert connection.call("PING") is True


def test_who_stops_reading_replies_can_use_the_connection(
    connection: Connection, raw: Redis
) -> None:
    replies = run_each(connection, add_args(*range(10)))
    assert next(replies) == []
    replies.close()
    assert connection.call("EXISTS", b"jobs:item:0") == 1
    assert list(run_each(connection, add_args(20))) == [[]]
    assert raw.lindex(b"jobs:queue", 0) == b"20"


@pytest.mark.real_only("SCRIPT EXISTS and the statistics of commands")
def test_a_script_that_the_server_has_is_not_sent_again(queue: WorkQueue, raw: Redis) -> None:
    raw.script_flush()
    raw.config_resetstat()
    for _ in range(3):
        queue.lease()
    for number in range(3):
        queue.add(b"", b"%d" % number)
    stats = raw.info("commandstats")
    assert stats["cmdstat_eval"]["calls"] == 2
    assert stats["cmdstat_evalsha"]["calls"] == 6
    for name in ("lease", "add"):
        text = load_script(name).text
        assert raw.script_exists(sha1(text.encode()).hexdigest()) == [True]


def test_looking_only_where_the_server_can(connection: Connection, raw: Redis) -> None:
    for _ in range(2):
        assert connection.look_only() is supports_no_touch(raw)


def test_a_server_that_refuses_to_be_only_looked_at(as_user: AsUser) -> None:
    made = as_user("+@all", "-client")
    assert made.look_only() is False
    assert made.call("PING") is True


@pytest.mark.real_only("the fake has neither CLIENT KILL nor idle times")
def test_looking_only_outlives_a_lost_connection(connection: Connection, raw: Redis) -> None:
    """A dashboard runs for days; after a reconnect it must not reset idle times either."""
    if not supports_no_touch(raw):
        pytest.skip("this server has no CLIENT NO-TOUCH (Redis before 7.2)")
    assert connection.look_only()
    raw.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    # redis-py opens a new one by itself, or at the second try.
    with suppress(ConnectionLost):
        connection.call("PING")
    assert connection.look_only()
    info = connection.call("CLIENT", "INFO").decode()
    flags = dict(pair.split("=", 1) for pair in info.split())["flags"]
    assert "T" in flags


def test_a_closed_connection_opens_again(connection: Connection) -> None:
    connection.close()
    assert connection.call("PING") is True
    connection.close()


def test_no_server_there() -> None:
    made = connect(Server("unix://user:secret@/no/such/socket"))
    with pytest.raises(Unreachable) as caught:
        made.call("PING")
    error = caught.value
    assert error.message == (
        "cannot reach unix://user:***@/no/such/socket: no such file or directory"
    )
    assert error.hint == "check -u or RWQ_URL, and that the server runs"
    assert error.code == "unreachable"


def test_nobody_listens() -> None:
    with socket.socket() as reserved:
        # Bound and not listening: nobody else can take the port meanwhile.
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        made = connect(Server(f"redis://127.0.0.1:{port}"))
        with pytest.raises(Unreachable) as caught:
            made.run("look", [], [])
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
            connect(Server(f"redis://127.0.0.1:{port}")).call("PING")
        other.join()
    assert caught.value.message == (
        f"lost the connection to redis://127.0.0.1:{port}: Connection closed by server."
    )
    assert caught.value.hint == "see what is in before you repeat it"
    assert caught.value.code == "connection-lost"


def test_a_server_that_does_not_answer() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        made = connect(Server(f"redis://127.0.0.1:{port}?socket_timeout=0.05"))
        with pytest.raises(ConnectionLost) as caught:
            made.call("PING")
    assert caught.value.message == (
        f"redis://127.0.0.1:{port}?socket_timeout=0.05 did not answer in time: "
        "Timeout reading from socket"
    )


def test_a_connection_that_is_never_made_is_unreachable() -> None:
    """A filtered port: redis-py gives up with its own TimeoutError while connecting."""
    error = translate(rx.TimeoutError("Timeout connecting to server"), "redis://host")
    assert type(error) is Unreachable


@pytest.mark.parametrize(
    ("url", "password"),
    [
        ("unix://{socket}", None),
        ("unix://{socket}", "n0t-this-one"),
        ("unix://:n0t-this-one@{socket}", None),
        ("unix://nobody:s3cret@{socket}", None),
    ],
)
def test_a_wrong_password(start_server: StartServer, url: str, password: str | None) -> None:
    private = start_server("--requirepass", "s3cret", password="s3cret")
    made = connect(Server(url.format(socket=private.socket), password=password))
    with pytest.raises(AuthenticationFailed) as caught:
        made.call("PING")
    assert caught.value.hint == "give it in RWQ_PASSWORD or with --password-file"
    assert caught.value.code == "authentication-failed"
    for secret in ("n0t-this-one", "s3cret"):
        assert secret not in caught.value.message


def test_looking_only_is_no_way_round_a_password(start_server: StartServer) -> None:
    """It tolerates a server that does not know how, and nothing else."""
    private = start_server("--requirepass", "s3cret", password="s3cret")
    with pytest.raises(AuthenticationFailed):
        connect(Server(private.url, password="n0t-this-one")).look_only()
    with pytest.raises(Unreachable):
        connect(Server("unix:///no/such/socket")).look_only()


def test_a_user_without_the_right_to_write(as_user: AsUser, server: PrivateServer) -> None:
    raw = server.client()
    fill(raw)
    before = contents(raw)
    with pytest.raises(PermissionDenied) as caught:
        WorkQueue(as_user("+@read"), QUEUE).add(b"data", b"new")
    assert caught.value.code == "permission-denied"
    assert caught.value.hint == "ask for an ACL rule that allows this command on the queue's keys"
    assert caught.value.acknowledged == 0
    assert contents(raw) == before


def need_permissions_to_be_asked_for(server: PrivateServer) -> None:
    """Redis has `redis.acl_check_cmd` since 7.0; before, a script finds out by being refused."""
    with server.client() as raw:
        if not raw.eval("return redis.acl_check_cmd and 1 or 0", 0):
            pytest.skip("a script cannot ask this server for permissions (Redis before 7.0)")


@pytest.mark.parametrize(
    ("command", "act"),
    [
        ("setnx", lambda queue: queue.add(b"data", b"new")),
        ("lpush", lambda queue: queue.add(b"data", b"new")),
        ("rpop", lambda queue: queue.lease()),
        ("mset", lambda queue: queue.add_unique(b"data", b"new")),
        ("get", lambda queue: queue.lease()),
        ("exists", lambda queue: list(queue.light_clean(grace_s=0))),
    ],
    ids=["add-setnx", "add-lpush", "lease-rpop", "unique-mset", "lease-get", "clean-exists"],
)
def test_a_script_that_may_not_run_a_command_is_denied_permission(
    as_user: AsUser, server: PrivateServer, command: str, act: Callable[[WorkQueue], object]
) -> None:
    need_permissions_to_be_asked_for(server)
    fill(server.client())
    limited = WorkQueue(as_user("+@all", f"-{command}"), QUEUE)
    with pytest.raises(PermissionDenied) as caught:
        act(limited)
    assert f"'{command}'" in caught.value.message


@pytest.mark.parametrize("command", ["lpush", "rpush", "lrem", "set", "del"])
@each_write
def test_a_user_who_lacks_a_command_leaves_no_half_step(
    as_user: AsUser, server: PrivateServer, command: str, write: Callable[[WorkQueue], object]
) -> None:
    """Redis does not roll a failed script back: it must find out before its first write."""
    need_permissions_to_be_asked_for(server)
    raw = server.client()
    fill(raw)
    before = contents(raw)
    limited = WorkQueue(as_user("+@all", f"-{command}"), QUEUE, holder=b"me")
    try:
        write(limited)
    except ServerError:
        after = contents(raw)
        if write is not DEEP_CLEAN:
            assert after == before
        # A deep clean is several steps, of which the first may be done; none may be half done.
        assert {key for key in after if b":item:" in key} == {
            key for key in before if b":item:" in key
        }
        assert sorted(listed(after)) == sorted(listed(before))


def listed(found: dict[bytes, Any]) -> list[bytes]:
    """The entries of both lists."""
    return found.get(b"jobs:queue", []) + found.get(b"jobs:processing", [])


@each_write
def test_a_replica_takes_no_writes(
    start_server: StartServer, write: Callable[[WorkQueue], object]
) -> None:
    private = start_server()
    raw = private.client()
    fill(raw)
    # Its primary does not exist, so it keeps what it has.
    raw.execute_command("REPLICAOF", "127.0.0.1", "1")
    before = contents(raw)
    with pytest.raises(ReadOnly) as caught:
        write(queue_at(private))
    assert caught.value.code == "read-only"
    assert caught.value.hint == "point -u at the primary, or mend its disk"
    assert contents(raw) == before


@each_write
def test_a_primary_that_misses_its_replicas(
    start_server: StartServer, write: Callable[[WorkQueue], object]
) -> None:
    private = start_server("--min-replicas-to-write", "1", "--min-replicas-max-lag", "10")
    raw = private.client()
    raw.config_set("min-replicas-to-write", 0)
    fill(raw)
    raw.config_set("min-replicas-to-write", 1)
    before = contents(raw)
    with pytest.raises(ServerError) as caught:
        write(queue_at(private))
    assert "NOREPLICAS" in caught.value.message
    assert contents(raw) == before


# These make no key before their first removal, after which a script may finish.
WORK_WITHOUT_MEMORY = {
    "lease",
    "complete",
    "complete as owner",
    "release",
    "release to the front",
    "light clean",
}


@pytest.mark.parametrize(("name", "write"), WRITES, ids=[name for name, _ in WRITES])
def test_a_server_without_memory_does_a_thing_wholly_or_not_at_all(
    start_server: StartServer, name: str, write: Callable[[WorkQueue], object]
) -> None:
    private = start_server("--maxmemory-policy", "noeviction")
    raw = private.client()
    fill(raw)
    before = contents(raw)
    write(queue_at(private))
    wholly = contents(raw)
    raw.flushall()
    fill(raw)
    raw.config_set("maxmemory", 1)
    if name in WORK_WITHOUT_MEMORY:
        write(queue_at(private))
        assert contents(raw) == wholly
        return
    with pytest.raises(OutOfMemory) as caught:
        write(queue_at(private))
    assert caught.value.code == "out-of-memory"
    assert caught.value.hint == "raise its maxmemory or complete some items"
    if name == "deep clean":
        # Its first half, the light clean, needs no memory and is done.
        keys = Foreign(raw).keys
        assert raw.lrange(keys.main, 0, -1) == [b"abandoned", b"waiting"]
        assert raw.lrange(keys.processing, 0, -1) == [b"leased"]
        assert set(contents(raw)) == {*before, keys.returns}
    else:
        assert contents(raw) == before


def test_a_batch_without_memory_is_wholly_out(start_server: StartServer) -> None:
    private = start_server("--maxmemory-policy", "noeviction")
    raw = private.client()
    raw.config_set("maxmemory", raw.info("memory")["used_memory"] + 40_000_000)
    items = (NewItem(b"%d" % number, b"x" * 10_000) for number in range(10_000))
    added = []
    with pytest.raises(OutOfMemory) as caught:
        added.extend(queue_at(private).add_many(items))
    raw.config_set("maxmemory", 0)
    assert caught.value.acknowledged == len(added) > 0
    ids = [outcome.item_id for outcome in added]
    assert raw.lrange(b"jobs:queue", 0, -1) == ids[::-1]
    assert set(raw.keys()) == {b"jobs:queue", *(b"jobs:item:" + item_id for item_id in ids)}


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (rx.AuthenticationError("NOAUTH required."), AuthenticationFailed, "authentication-failed"),
        (rx.ResponseError("WRONGPASS invalid"), AuthenticationFailed, "authentication-failed"),
        (rx.NoPermissionError("User x"), PermissionDenied, "permission-denied"),
        (rx.ResponseError("NOPERM no"), PermissionDenied, "permission-denied"),
        (rx.BusyLoadingError("Redis is loading"), Loading, "loading"),
        (rx.ResponseError("LOADING Redis"), Loading, "loading"),
        (rx.ReadOnlyError("You can't write"), ReadOnly, "read-only"),
        (rx.ResponseError("READONLY You can't"), ReadOnly, "read-only"),
        (rx.ResponseError("MISCONF Errors writing"), ReadOnly, "read-only"),
        (rx.OutOfMemoryError("command not allowed"), OutOfMemory, "out-of-memory"),
        (rx.ResponseError("OOM command not allowed"), OutOfMemory, "out-of-memory"),
        (rx.ResponseError("WRONGTYPE Operation"), WrongType, "wrong-type"),
        (rx.TimeoutError("Timeout reading"), ConnectionLost, "connection-lost"),
        (rx.ConnectionError("Error 111 connecting to x"), Unreachable, "unreachable"),
        (rx.ConnectionError("Connection closed"), ConnectionLost, "connection-lost"),
        (rx.ResponseError("unknown command"), ServerError, "server-error"),
    ],
)
def test_every_refusal_has_its_class(error: Exception, kind: type[ServerError], code: str) -> None:
    translated = translate(error, "redis://host")
    assert type(translated) is kind
    assert translated.code == code
    assert translated.acknowledged is None


def test_an_error_is_one_line() -> None:
    error = translate(rx.ResponseError("ERR  two\n lines\t\r\n "), "redis://host")
    assert error.message == "redis://host refused: ERR two lines"


class TestWire:
    """A connection whose reply is waited for beside others."""

    @pytest.fixture
    def ends(self) -> Iterator[tuple[Wire, socket.socket]]:
        """A wire, and the server's end of it."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            connection = connect(Server(f"redis://127.0.0.1:{port}"))
            wire = connection.wire()
            far, _ = listener.accept()
            with far:
                yield wire, far
                wire.close()

    def test_a_reply_in_pieces(self, ends: tuple[Wire, socket.socket]) -> None:
        wire, far = ends
        wire.send("BLMOVE", b"a:queue")
        assert far.recv(100) == b"*2\r\n$6\r\nBLMOVE\r\n$7\r\na:queue\r\n"
        assert not wire.has_answered()
        far.sendall(b"$3\r\nab")
        assert not wire.has_answered()
        far.sendall(b"c\r\n")
        assert wire.has_answered()
        wire.send("PING", b"x")
        assert far.recv(100) == b"*2\r\n$4\r\nPING\r\n$1\r\nx\r\n"

    def test_its_socket_tells_when(self, ends: tuple[Wire, socket.socket]) -> None:
        wire, far = ends
        wire.send("BLMOVE", b"a:queue")
        assert select.select([wire], [], [], 0.01)[0] == []
        far.sendall(b"$-1\r\n")
        assert select.select([wire], [], [], 5)[0] == [wire]
        assert wire.has_answered()

    def test_an_error_is_about_the_key(self, ends: tuple[Wire, socket.socket]) -> None:
        wire, far = ends
        wire.send("BLMOVE", b"a:queue")
        far.sendall(b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n")
        with pytest.raises(WrongType) as caught:
            wire.has_answered()
        assert caught.value.message == "a:queue holds another type than the protocol says"

    def test_the_end_of_the_connection(self, ends: tuple[Wire, socket.socket]) -> None:
        wire, far = ends
        wire.send("BLMOVE", b"a:queue")
        far.close()
        with pytest.raises(ConnectionLost):
            wire.has_answered()
