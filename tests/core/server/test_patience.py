"""What is sent again after a refusal that passes or a lost connection, and what never is."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import cycle
from threading import Thread

import pytest

from rwq_cli.core import Connection, Server, WorkQueue, connect
from rwq_cli.core.errors import ConnectionLost, RwqError, ServerError
from rwq_cli.core.server.commands import ScriptCommand
from tests.driver import TIMEOUT_S

# Hangs up instead of a reply.
HANG_UP = b""
PONG = b"+PONG\r\n"
BUSY = b"-BUSY Redis is busy running a script.\r\n"
READONLY = b"-READONLY You can't write against a read only replica.\r\n"


class Scripted:
    """A server that gives these replies to what it receives, whatever it is.

    Attributes:
        url: Its URL.
        received: Each command's first word, with the number of its connection, from 1.
    """

    def __init__(self, listener: socket.socket, replies: list[bytes]) -> None:
        self.url = f"redis://127.0.0.1:{listener.getsockname()[1]}"
        self.received: list[tuple[int, bytes]] = []
        self._listener = listener
        self._replies = replies

    def run(self) -> None:
        connections = 0
        while self._replies:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            connections += 1
            with accepted:
                while self._replies and (command := accepted.recv(1 << 16)):
                    self.received.append((connections, command.split(b"\r\n")[2]))
                    if (reply := self._replies.pop(0)) == HANG_UP:
                        break
                    accepted.sendall(reply)


@contextmanager
def scripted(*replies: bytes) -> Iterator[Scripted]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Scripted(listener, list(replies))
        thread = Thread(target=server.run, daemon=True)
        thread.start()
        yield server


ACTS: dict[str, Callable[[Connection], object]] = {
    "script": lambda connection: connection.call_all([ScriptCommand("lease", [b"k"], [])])[0],
    "command": lambda connection: connection.call("DEL", b"k"),
    "several": lambda connection: connection.call_all([("DEL", b"k")])[0],
    "stream": lambda connection: next(connection.stream([ScriptCommand("lease", [b"k"], [])])),
}


CODES = ["BUSY", "LOADING", "MASTERDOWN", "NOREPLICAS", "CLUSTERDOWN", "TRYAGAIN"]


@pytest.mark.parametrize(("code", "how"), [*zip(CODES, cycle(ACTS), strict=False)])
def test_a_passing_refusal_is_awaited_on_a_new_link(code: str, how: str) -> None:
    refusal = f"-{code} not now\r\n".encode()
    with scripted(refusal, refusal, b":7\r\n") as server:
        assert ACTS[how](connect(Server(server.url))) == 7
    assert [number for number, _ in server.received] == [1, 2, 3]


@pytest.mark.parametrize("how", ACTS)
@pytest.mark.parametrize("before", [[], [BUSY]])
def test_a_write_without_a_reply_is_not_sent_again(how: str, before: list[bytes]) -> None:
    with scripted(PONG, *before, HANG_UP, b":7\r\n") as server:
        connection = connect(Server(server.url))
        connection.call("PING")
        with pytest.raises(ConnectionLost) as caught:
            ACTS[how](connection)
        assert caught.value.in_doubt
    # What is sent after it asks for the limit of replies.
    commands = [command for _, command in server.received if command != b"CONFIG"]
    assert len(commands) == len(before) + 2


READS: dict[str, Callable[[Connection], object]] = {
    "script": lambda connection: connection.call_all([ScriptCommand("states", [b"k"], [])])[0],
    "command": lambda connection: connection.call("LLEN", b"k"),
    "stream": lambda connection: next(connection.stream([("LLEN", b"k")], reads_only=True)),
}


@pytest.mark.parametrize("how", READS)
@pytest.mark.parametrize("hang_ups", [1, 2])
def test_a_read_whose_reply_is_lost_is_sent_again_once(how: str, hang_ups: int) -> None:
    with scripted(PONG, *[HANG_UP] * hang_ups, b":7\r\n") as server:
        connection = connect(Server(server.url))
        connection.call("PING")
        with pytest.raises(ServerError) if hang_ups > 1 else nullcontext():
            assert READS[how](connection) == 7


def test_batches_of_reads_are_sent_again() -> None:
    with scripted(PONG, HANG_UP, b":7\r\n") as server:
        queue = WorkQueue(connect(Server(server.url)), "jobs")
        queue.connection.call("PING")
        sizes = {"preview_bytes": 1, "bytes_max": 1}
        assert [*queue.read_each("details", [b"k"], what="nothing", **sizes)] == [([b"k"], 7)]


def test_a_former_primary_is_waited_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be meant to be one; else an address leads to another server soon."""
    monkeypatch.setattr("rwq_cli.core.server.endpoint.DEMOTED_S", 0.05)
    with (
        scripted(*[READONLY] * 1000) as server,
        pytest.raises(ServerError, match="does not accept writes"),
    ):
        connect(Server(server.url)).call("DEL", b"k")
    assert len({number for number, _ in server.received}) > 1
    with scripted(b":6\r\n", *[READONLY] * 6, b":7\r\n") as server:
        connection = connect(Server(server.url))
        assert [connection.call("DEL", b"k") for _ in range(2)] == [6, 7]


@pytest.mark.parametrize(
    "text", ["OOM no", "NOPERM no", "MISCONF no", "MOVED 1 h:1", "ERR no", "WRONGTYPE no"]
)
def test_other_refusals_are_raised_at_once(text: str) -> None:
    with scripted(f"-{text}\r\n".encode(), b":7\r\n") as server, pytest.raises(ServerError):
        connect(Server(server.url)).call_all([ScriptCommand("lease", [b"k"], [])])
    assert len(server.received) == 1


@pytest.mark.parametrize("how", ACTS)
def test_a_wait_is_told_once_an_outage(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr("rwq_cli.core.server.endpoint._REPORT_AFTER_S", 0)
    told: list[str] = []
    replies = [BUSY, BUSY, b":7\r\n"]
    with scripted(*replies, *replies) as server:
        connection = connect(Server(server.url))
        connection.on_wait = told.append
        assert [ACTS[how](connection) for _ in range(2)] == [7, 7]
    assert len(told) == 2


def test_waiting_is_told_once_and_ends_in_the_refusal() -> None:
    told: list[str] = []
    with scripted(*[BUSY] * 1000) as server:
        connection = connect(Server(server.url, patience_s=1.3))
        connection.on_wait = told.append
        began = time.monotonic()
        with pytest.raises(ServerError, match="is busy with a script"):
            connection.call("DEL", b"k")
        assert 1.3 <= time.monotonic() - began < TIMEOUT_S
    assert [line.split(": ")[:2] for line in told] == [["rwq", "waiting up to 1.3 s"]]


def test_the_callers_own_time_and_stop_end_a_wait() -> None:
    with scripted(*[BUSY] * 1000) as server:
        connection = connect(Server(server.url))
        with pytest.raises(ServerError):
            connection.within(0.1, is_patient=False).call("GET", b"k")
        connection.stop.requested = True
        with pytest.raises(KeyboardInterrupt):
            connection.call("GET", b"k")


def test_a_rotated_password_is_asked_for_again() -> None:
    passwords = iter(["old", "new"])
    with scripted(b"+OK\r\n", BUSY, b"+OK\r\n", b":7\r\n") as server:
        connection = connect(Server(server.url, password=lambda: next(passwords)))
        assert connection.call("DEL", b"k") == 7
    assert [word for _, word in server.received] == [b"AUTH", b"DEL", b"AUTH", b"DEL"]


def test_a_password_that_cannot_be_read_is_the_error() -> None:
    def unreadable() -> str:
        raise RwqError("cannot read the password file")

    with scripted(b"+OK\r\n") as server:
        connection = connect(Server(server.url, password=unreadable))
        for _ in range(2):
            with pytest.raises(RwqError, match="cannot read the password file"):
                connection.call("PING")
        assert server.received == []
