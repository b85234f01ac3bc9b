"""What each error reply of a server becomes, through redis-py as it is installed."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import NamedTuple

import pytest
from redis import Redis, exceptions as rx
from redis._parsers.base import BaseParser

from rwq_cli.core import Connection, Server, ServerError, WorkQueue, connect
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
from rwq_cli.core.server.error_mapping import lost, translate, unreachable
from tests.conftest import StartServer

SHA = "6e811b139564201b18ee3136bad6ce232559bad8"
OLD = f"ERR Error running script (call to f_{SHA}): @user_script:12: "
NEW = f" script: {SHA}, on @user_script:12."

# A queue and a key that are named like codes: nothing but the first word counts.
TRAP = "readonly-jobs:OOM LOADING NOPERM NOAUTH WRONGTYPE"

REPLIES: list[tuple[str, type[ServerError], str, str | None]] = [
    ("NOAUTH Authentication required.", AuthenticationFailed, "rejected the password", "RWQ_PASS"),
    (
        "WRONGPASS invalid username-password pair",
        AuthenticationFailed,
        "invalid username",
        "RWQ_PASS",
    ),
    ("ERR invalid password", AuthenticationFailed, "rejected the password", "RWQ_PASS"),
    (
        "ERR AUTH <password> called without any password configured for the default user. "
        "Are you sure your configuration is correct?",
        *(AuthenticationFailed, "called without any password", "RWQ_PASS"),
    ),
    (
        "ERR Protocol error: unauthenticated multibulk length",
        *(AuthenticationFailed, "unauthenticated", "RWQ_PASS"),
    ),
    ("NOPERM this user has no permissions to run the 'set' command", PermissionDenied, "", "ACL"),
    ("NOPERM No permissions to access a key", PermissionDenied, "denied permission", "ACL"),
    ("DENIED Redis is running in protected mode", PermissionDenied, "DENIED", "set a password"),
    ("LOADING Redis is loading the dataset in memory", Loading, "still loading", "in a moment"),
    ("BUSY Redis is busy running a script.", Busy, "BUSY Redis is busy", "SCRIPT KILL"),
    ("MASTERDOWN Link with MASTER is down", Unavailable, "has lost its primary", "primary"),
    ("CLUSTERDOWN The cluster is down", Unavailable, "CLUSTERDOWN The cluster", "in a moment"),
    ("TRYAGAIN Multiple keys request", Unavailable, "moving this queue", "in a moment"),
    ("MOVED 3999 127.0.0.1:6381", WrongNode, "MOVED 3999 127.0.0.1:6381", "redis+cluster"),
    ("ASK 3999 127.0.0.1:6381", Unavailable, "moving this queue", "in a moment"),
    ("CROSSSLOT Keys in request don't hash", ServerError, "on several nodes", "{jobs}"),
    ("READONLY You can't write against a read only", ReadOnly, "does not accept writes", "primary"),
    ("MISCONF Errors writing to the AOF file", ReadOnly, "does not accept writes: MISCONF", "disk"),
    ("NOREPLICAS Not enough good replicas to write.", ReadOnly, "NOREPLICAS", "replicas"),
    ("OOM command not allowed when used memory", OutOfMemory, "OOM command", "maxmemory"),
    (
        "EXECABORT Transaction discarded because of: OOM command not allowed",
        *(OutOfMemory, "out of memory: OOM command", "maxmemory"),
    ),
    ("EXECABORT Transaction discarded because of previous errors.", ServerError, "EXECABORT", None),
    ("WRONGTYPE jobs:queue holds another type", WrongType, "jobs:queue holds", "TYPE command"),
    ("ERR unknown command 'CONFIG'", ServerError, "refused: unknown command 'CONFIG'", None),
    ("NEWCODE nobody knows", ServerError, "refused: NEWCODE nobody knows", None),
    ("ERR two\tblanks  in it", ServerError, "refused: two blanks in it", None),
    # The text is somebody else's.
    (f"ERR {TRAP}", ServerError, f"refused: {TRAP}", None),
    (f"WRONGTYPE {TRAP} holds another type", WrongType, f"{TRAP} holds", "TYPE command"),
    (f"NOPERM {TRAP}", PermissionDenied, TRAP, "ACL"),
    (f"READONLY {TRAP}", ReadOnly, TRAP, "primary"),
    (f"MISCONF {TRAP}", ReadOnly, TRAP, "disk"),
]


@pytest.fixture
def refusing() -> Iterator[Callable[[str], Connection]]:
    """Makes a connection to a server that answers every command with this error."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        replies = [b""]

        def serve() -> None:
            with suppress(OSError):
                while True:
                    accepted, _ = listener.accept()
                    with accepted:
                        while accepted.recv(1 << 16):
                            accepted.sendall(replies[0])

        threading.Thread(target=serve, daemon=True).start()

        def refused(reply: str) -> Connection:
            replies[0] = f"-{reply}\r\n".encode()
            url = f"redis://127.0.0.1:{listener.getsockname()[1]}"
            return connect(Server(url, patience_s=0))

        yield refused


@pytest.mark.parametrize(("reply", "kind", "words", "hint"), REPLIES, ids=[r[0] for r in REPLIES])
def test_the_first_word_of_a_reply_decides(
    refusing: Callable[[str], Connection],
    reply: str,
    kind: type[ServerError],
    words: str,
    hint: str | None,
) -> None:
    connection = refusing(reply)
    with pytest.raises(ServerError) as caught:
        connection.call("GET", b"key")
    error = caught.value
    assert type(error) is kind
    assert words in error.message
    assert (hint is None) == (error.hint is None)
    assert hint is None or hint in error.hint
    assert error.acknowledged is None
    assert not error.in_doubt


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        # Redis 6.2.
        (
            OLD + "WRONGTYPE Operation against a key holding the wrong kind of value",
            *(WrongType, "a key of the queue has the wrong type"),
        ),
        (
            OLD + "@user_script: 12: -OOM command not allowed when used memory > 'maxmemory'.",
            *(OutOfMemory, "is out of memory: OOM command not allowed"),
        ),
        (
            OLD + "@user_script: 12: -NOREPLICAS Not enough good replicas to write.",
            *(ReadOnly, "does not accept writes: NOREPLICAS"),
        ),
        (
            OLD + "@user_script: 12: -READONLY You can't write against a read only replica.",
            *(ReadOnly, "does not accept writes: READONLY"),
        ),
        (
            OLD + "@user_script: 12: The user executing the script can't run this command or "
            "subcommand",
            *(PermissionDenied, "denied permission: The user executing the script can't run"),
        ),
        (
            OLD + "@user_script: 12: The user executing the script can't access at least one of "
            "the keys mentioned in the command arguments",
            *(PermissionDenied, "denied permission: The user executing the script can't access"),
        ),
        (OLD + "@user_script: 12: Unknown Redis command called from Lua script", ScriptError, ""),
        (OLD + "user_script:12: attempt to index a nil value", ScriptError, "attempt to index"),
        (OLD + "ERR value is not an integer or out of range", ScriptError, "value is not an int"),
        # Redis 7.0 and later, and Valkey.
        (
            "WRONGTYPE Operation against a key holding the wrong kind of value" + NEW,
            *(WrongType, "a key of the queue has the wrong type"),
        ),
        (
            "OOM command not allowed when used memory > 'maxmemory'." + NEW,
            *(OutOfMemory, "is out of memory: OOM command not allowed"),
        ),
        ("NOREPLICAS Not enough good replicas to write." + NEW, ReadOnly, "NOREPLICAS Not enough"),
        ("READONLY You can't write" + NEW, ReadOnly, "does not accept writes: READONLY"),
        (
            "ERR The user executing the script can't run this command or subcommand" + NEW,
            *(PermissionDenied, "denied permission: The user executing"),
        ),
        (
            "ERR ACL failure in script: User lim has no permissions to run the 'set' command" + NEW,
            *(PermissionDenied, "User lim has no permissions to run the 'set' command"),
        ),
        ("NOPERM ACL failure in script: No permissions" + NEW, PermissionDenied, "No permissions"),
        ("ERR user_script:12: attempt to index a nil value" + NEW, ScriptError, "attempt to index"),
        ("ERR value is not an integer or out of range" + NEW, ScriptError, "value is not an int"),
        # What our scripts return themselves.
        ("WRONGTYPE jobs:queue holds another type", WrongType, "jobs:queue holds another type"),
    ],
)
def test_an_error_inside_a_script(
    refusing: Callable[[str], Connection], reply: str, kind: type[ServerError], words: str
) -> None:
    connection = refusing(reply)
    for attempt in (
        lambda: connection.run("lease", [], []),
        lambda: list(connection.run_each("lease", [], [()])),
    ):
        with pytest.raises(ServerError) as caught:
            attempt()
        assert type(caught.value) is kind
        assert words in caught.value.message
        assert "user_script" not in caught.value.message
        assert SHA not in caught.value.message


@pytest.mark.parametrize(
    "reply",
    [
        OLD + "user_script:12: attempt to index a nil value",
        OLD + "ERR value is not an integer",
        "ERR user_script:12: attempt to index a nil value" + NEW,
        "ERR value is not an integer" + NEW,
    ],
)
def test_a_bug_in_a_script_is_named_with_its_file_and_line(reply: str) -> None:
    class Stub(NamedTuple):
        text: str = ""
        sha1: str = SHA

        def origin(self, line: int) -> tuple[str, int]:
            return "ops/lease.lua", line - 10

    error = translate(BaseParser.parse_error(reply), "redis://host", script=Stub())  # type: ignore[arg-type]
    assert type(error) is ScriptError
    assert error.message.startswith("redis://host failed in rwq's script ops/lease.lua, line 2: ")
    assert error.hint == "this is a bug in rwq: please report it"


@pytest.mark.parametrize("name", ["readonly-jobs", "OOM x", "NOPERM can't run", "LOADING"])
def test_a_queue_with_the_name_of_a_code(connection: Connection, raw: Redis, name: str) -> None:
    raw.set(f"{name}:queue", b"text")
    with pytest.raises(WrongType) as caught:
        WorkQueue(connection, name).lease()
    assert caught.value.message.startswith(f"{name}:queue has the wrong type")


def test_the_cause_of_an_aborted_transaction(start_server: StartServer) -> None:
    private = start_server("--maxmemory-policy", "noeviction")
    connection = connect(Server(private.url))
    private.client().config_set("maxmemory", 1)
    with pytest.raises(OutOfMemory):
        connection.call_all([("SET", b"a", b"b")], atomic=True)
    with pytest.raises(OutOfMemory):
        list(connection.transact_each([[("SET", b"a", b"b")]]))


def test_a_reply_whose_code_an_older_client_has_cut_off() -> None:
    for error, kind in (
        (rx.NoPermissionError("this user has no permissions"), PermissionDenied),
        (rx.BusyLoadingError("Redis is loading"), Loading),
        (rx.ReadOnlyError("You can't write"), ReadOnly),
        (rx.OutOfMemoryError("command not allowed"), OutOfMemory),
        (rx.AuthenticationError("Authentication required."), AuthenticationFailed),
        (rx.ResponseError("NOREPLICAS Not enough"), ReadOnly),
        (rx.ResponseError("unknown command"), ServerError),
    ):
        assert type(translate(error, "redis://host")) is kind
    moved = translate(rx.MovedError("3999 127.0.0.1:6381"), "redis://host")
    assert moved.message.endswith("MOVED 3999 127.0.0.1:6381")


class TestConnections:
    def test_a_connection_that_is_not_made_in_time_is_unreachable(self) -> None:
        error = unreachable(rx.TimeoutError("Timeout connecting to server"), "redis://host", 5)
        assert type(error) is Unreachable
        assert error.message == "cannot reach redis://host: it did not answer within 5 s"
        assert error.hint == "check -u or RWQ_URL, and that the server runs"

    def test_a_broken_connection_leaves_the_outcome_in_doubt(self) -> None:
        error = lost(rx.ConnectionError("Connection reset by peer."), "redis://host", 30)
        assert type(error) is ConnectionLost
        assert error.message == "lost the connection to redis://host: connection reset by peer"
        assert error.in_doubt

    def test_a_server_that_has_no_room_for_another(self) -> None:
        refusal = rx.ConnectionError("max number of clients reached")
        error = lost(refusal, "redis://host", 30)
        assert type(error) is Unreachable
        assert error.message == "cannot reach redis://host: max number of clients reached"
        assert not error.in_doubt
