"""What each error reply of a server becomes, through redis-py as it is installed."""

import re
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from redis import exceptions as rx
from redis._parsers.base import BaseParser

from rwq_cli.core import Connection, Server, ServerError, connect
from rwq_cli.core.errors import (
    AuthenticationFailed,
    Busy,
    ConnectionLost,
    Loading,
    OutOfMemory,
    PermissionDenied,
    ReadOnly,
    ScriptError,
    Unavailable,
    Unreachable,
    WrongNode,
    WrongType,
)
from rwq_cli.core.server import link
from rwq_cli.core.server.commands import ScriptCommand, Transaction
from rwq_cli.core.server.error_mapping import lost, translate
from tests.conftest import StartServer
from tests.proxies import answering, served
from tests.servers import PrivateServer
from tests.tls import tls_front

SHA = "6e811b139564201b18ee3136bad6ce232559bad8"
OLD = f"ERR Error running script (call to f_{SHA}): @user_script:12: "
NEW = f" script: {SHA}, on @user_script:12."

# A queue and a key that are named like codes: nothing but the first word counts.
TRAP = "readonly-jobs:OOM LOADING NOPERM NOAUTH WRONGTYPE"

OLD_LUA = OLD + "@user_script: 12: "
PASSWORD = (AuthenticationFailed, "rejected the password, or requires one: ", "RWQ_PASSWORD or")
NO_PASSWORD = (AuthenticationFailed, "wants no password", "leave out the password")
DENIED = (PermissionDenied, "denied permission: ", "ACL rule")
MEMORY = (OutOfMemory, "is out of memory: OOM command not allowed", "maxmemory")
REPLICAS = (ReadOnly, "does not accept writes: NOREPLICAS", "replicas")
REPLICA = (ReadOnly, "does not accept writes: READONLY", "primary")
MOVING = (Unavailable, "is moving this queue to another node", "in a moment")
DOWN = "Script attempted to execute a write command while the cluster is down"
BUG = (ScriptError, "failed in rwq's script ", "a bug in rwq")
UNDECLARED = (ServerError, "lets scripts use only declared keys", "docs/servers.md")
TYPE = (WrongType, "a key of the queue has the wrong type", "TYPE command")

# A reply to a call of a script, its error, a part of the message, and of the hint.
REPLIES: list[tuple[str, tuple[type[ServerError], str, str | None]]] = [
    ("NOAUTH Authentication required.", PASSWORD),
    ("WRONGPASS invalid username-password pair", PASSWORD),
    ("ERR invalid password", PASSWORD),
    ("ERR Protocol error: unauthenticated multibulk length", PASSWORD),
    ("ERR AUTH <password> called without any password configured for the default", NO_PASSWORD),
    ("ERR Client sent AUTH, but no password is set", NO_PASSWORD),
    ("NOPERM this user has no permissions to run the 'set' command", DENIED),
    (f"NOPERM {TRAP}", DENIED),
    ("DENIED Redis is running in protected mode", (PermissionDenied, "DENIED", "set a password")),
    ("LOADING Redis is loading", (Loading, "is still loading its data", "in a moment")),
    ("BUSY Redis is busy running a script.", (Busy, "is busy with a script", "SCRIPT KILL")),
    ("MASTERDOWN Link with MASTER is down", (Unavailable, "has lost its primary", "primary")),
    ("CLUSTERDOWN The cluster is down", (Unavailable, "cluster that is down", "in a moment")),
    (f"ERR {DOWN} and readonly" + NEW, (Unavailable, "cluster that is down", "in a moment")),
    (OLD_LUA + DOWN, (Unavailable, "cluster that is down", "in a moment")),
    ("UNBLOCKED force unblock", (Unavailable, "has become a replica", "in a moment")),
    ("TRYAGAIN Multiple keys request", MOVING),
    ("ASK 3999 127.0.0.1:6381", MOVING),
    ("MOVED 3999 127.0.0.1:6381", (WrongNode, "MOVED 3999 127.0.0.1:6381", "redis+cluster")),
    ("CROSSSLOT Keys in request don't hash", (ServerError, "on several nodes", "{jobs}")),
    ("READONLY You can't write against a read only", REPLICA),
    (f"READONLY {TRAP}", REPLICA),
    ("MISCONF Errors writing to the AOF", (ReadOnly, "not accept writes: MISCONF", "disk")),
    ("NOREPLICAS Not enough good replicas to write.", REPLICAS),
    ("OOM command not allowed when used memory > 'maxmemory'.", MEMORY),
    ("EXECABORT Transaction discarded because of: OOM command not allowed", MEMORY),
    ("EXECABORT Transaction discarded because of previous", (ServerError, "EXECABORT", None)),
    # What our scripts return themselves.
    (f"WRONGTYPE {TRAP} holds another type", (WrongType, f"{TRAP} holds", "TYPE command")),
    ("ERR unknown command 'CONFIG'", (ServerError, "refused: unknown command 'CONFIG'", None)),
    ("NEWCODE nobody knows", (ServerError, "refused: NEWCODE nobody knows", None)),
    # The text is somebody else's.
    (f"ERR two\tblanks  in {TRAP}", (ServerError, f"refused: two blanks in {TRAP}", None)),
    # Inside a script, by Redis 6.2.
    (OLD + "WRONGTYPE Operation against a key holding the wrong kind of value", TYPE),
    (OLD_LUA + "-OOM command not allowed when used memory > 'maxmemory'.", MEMORY),
    (OLD_LUA + "-NOREPLICAS Not enough good replicas to write.", REPLICAS),
    (OLD_LUA + "-READONLY You can't write against a read only replica.", REPLICA),
    (OLD_LUA + "The user executing the script can't run this command or subcommand", DENIED),
    (OLD_LUA + "Unknown Redis command called from Lua script", BUG),
    (OLD + "user_script:12: attempt to index a nil value", BUG),
    (OLD + "ERR value is not an integer or out of range", BUG),
    # By Redis 7.0 and later, Valkey and Dragonfly.
    ("WRONGTYPE Operation against a key holding the wrong kind of value" + NEW, TYPE),
    ("OOM command not allowed when used memory > 'maxmemory'." + NEW, MEMORY),
    ("NOREPLICAS Not enough good replicas to write." + NEW, REPLICAS),
    ("READONLY You can't write" + NEW, REPLICA),
    ("ERR The user executing the script can't run this command or subcommand" + NEW, DENIED),
    ("ERR ACL failure in script: User lim has no permissions to run 'set'" + NEW, DENIED),
    ("NOPERM ACL failure in script: No permissions" + NEW, DENIED),
    ("ERR user_script:12: attempt to index a nil value" + NEW, BUG),
    ("ERR value is not an integer or out of range" + NEW, BUG),
    (OLD + "script tried accessing undeclared key, key: jobs:item:1", UNDECLARED),
]


@pytest.mark.parametrize(
    ("reply", "kind", "words", "hint"), [(reply, *expected) for reply, expected in REPLIES]
)
def test_the_first_word_of_a_reply_decides(
    reply: str, kind: type[ServerError], words: str, hint: str | None
) -> None:
    """By what a server answers to every command."""
    with answering(f"-{reply}\r\n".encode()) as url:
        connection = connect(Server(url, patience_s=0))
        with pytest.raises(ServerError) as caught:
            connection.call_all([ScriptCommand("lease", [], [])])
        with pytest.raises(kind):
            list(connection.stream([ScriptCommand("lease", [], [])]))
    error = caught.value
    assert type(error) is kind
    assert words in error.message
    assert (hint is None) == (error.hint is None)
    assert hint is None or hint in str(error.hint)
    assert not error.in_doubt
    assert not re.search("user_script|" + SHA, error.message)


@pytest.mark.parametrize(("before", "after"), [(OLD, ""), ("", NEW)], ids=["old", "new"])
def test_a_bug_in_a_script_is_named_with_its_line(before: str, after: str) -> None:
    parsed = BaseParser.parse_error(f"{before}ERR value is not an integer{after}")
    error = translate(parsed, "redis://host", ScriptCommand("lease", [], []))
    assert error.message.startswith("redis://host failed in rwq's script lease, line 12: ")


def test_the_cause_of_an_aborted_transaction(start_server: StartServer) -> None:
    private = start_server("--maxmemory-policy", "noeviction")
    connection = connect(Server(private.url))
    private.client().config_set("maxmemory", 1)
    with pytest.raises(OutOfMemory):
        connection.call_all([("SET", b"a", b"b")], atomic=True)
    with pytest.raises(OutOfMemory):
        list(connection.stream([Transaction([("SET", b"a", b"b")])]))


@pytest.mark.parametrize(
    ("answer", "first"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", False),
        (b"SSH-2.0-OpenSSH_9.2\r\n", True),
        (b"ERROR\r\n", False),
        # More than there is memory for.
        (b"*9223372036854775807\r\n", False),
        (b"%1\r\n%0\r\n+value\r\n", False),
        # A line without end.
        (b"+" * 200_000, False),
        (b">2\r\n+a\r\n+b\r\n" * 1000, False),
    ],
)
@pytest.mark.parametrize("password", [None, "x"])
@pytest.mark.parametrize(
    "call",
    [lambda c: c.call("PING"), lambda c: list(c.stream([ScriptCommand("lease", [], [])]))],
    ids=["call", "stream"],
)
def test_what_is_not_redis_is_named(
    answer: bytes, first: bool, password: str | None, call: Callable[[Connection], object]
) -> None:
    with answering(answer, first=first) as url, pytest.raises(ServerError) as caught:
        call(connect(Server(url, password=password)))
    assert caught.value.message == f"{url} is not a Redis server"
    assert (caught.value.is_transient, caught.value.in_doubt) == (False, False)


# More replies than requests, each of which might be one of Redis, and one that does not end.
@pytest.mark.parametrize(
    ("reply", "pause_s"), [(b"+a\r\n" * 1000, 0), (b"*1\r\n:1\r\n" * 1000, 0), (b"*9\r\n", 0.05)]
)
def test_what_does_not_stop_is_not_redis(
    monkeypatch: pytest.MonkeyPatch, reply: bytes, pause_s: float
) -> None:
    monkeypatch.setattr(link, "_FIRST_REPLY_S", 0.3)

    def drip(client: socket.socket) -> None:
        client.recv(1 << 16)
        while True:
            client.sendall(reply)
            time.sleep(pause_s)

    with served(drip) as listener, pytest.raises(ServerError, match="is not a Redis server"):
        connect(Server(f"redis://localhost:{listener.getsockname()[1]}")).call("PING")


def test_tls_on_one_side_only_is_named(server: PrivateServer, tmp_path: Path) -> None:
    with tls_front(server.socket, tmp_path) as url:
        for password in (None, "x"):
            with pytest.raises(ServerError, match=r"because it speaks TLS \(rediss://\)"):
                connect(Server(url.replace("rediss", "redis"), password=password)).call("PING")
    # As OpenSSL answers.
    with answering(b"\x15\x03\x01\0\2\2\x46") as url, pytest.raises(ServerError) as caught:
        connect(Server(url)).call("PING")
    assert caught.value.message == f"{url} speaks TLS"
    for answer in (b"-ERR unknown command\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n"):
        with answering(answer) as url, pytest.raises(ServerError, match="it does not speak TLS"):
            connect(Server(url.replace("redis", "rediss"))).call("PING")


def test_a_broken_connection_is_an_outcome_in_doubt() -> None:
    error = lost(rx.ConnectionError("Connection reset by peer."), "redis://host", 30)
    assert type(error) is ConnectionLost
    assert error.message == "lost the connection to redis://host: connection reset by peer"
    assert error.in_doubt
    full = lost(rx.ConnectionError("max number of clients reached"), "redis://host", 30)
    assert (type(full), full.in_doubt) == (Unreachable, False)
    assert full.message == "cannot reach redis://host: max number of clients reached"
