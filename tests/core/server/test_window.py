"""Calls sent ahead of their replies: their order, pauses, refusals, and lost connections."""

import socket
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from redis import Redis

from rwq_cli.core import Connection, Server, ServerError, WorkQueue, connect
from rwq_cli.core.batches import FLUSH, Flush
from rwq_cli.core.errors import OutOfMemory, WrongType
from rwq_cli.core.handle import Queue
from rwq_cli.core.items.add import NewItems, add_batches
from rwq_cli.core.server.commands import REFUSED, Transaction
from rwq_cli.core.server.connection import WINDOW_CALLS
from rwq_cli.core.server.link import Link
from tests.conftest import QUEUE, StartServer


def add_args(*numbers: int, data: bytes = b"data") -> list[tuple[bytes, bytes]]:
    """What one call of `add` for each number has: the item of that name."""
    return [(b"%d" % number, data) for number in numbers]


def add_each(connection: Connection, calls: Iterable[tuple[bytes, bytes] | None]) -> Iterator[Any]:
    queue = Queue(connection, QUEUE)
    commands = (c and ((), queue.script("add", *c, ids_are="any", delays="")) for c in calls)
    return (reply for _, reply in queue.run_each(commands))


def ids(*numbers: int) -> list[bytes]:
    """The IDs of items that were added in this order, as main lists them."""
    return [b"%d" % number for number in reversed(numbers)]


def test_replies_come_in_the_order_of_the_calls(connection: Connection, raw: Redis) -> None:
    raw.set(b"jobs:item:2", b"old")
    raw.set(b"jobs:item:6", b"old")
    assert list(add_each(connection, [None, None])) == []
    replies = list(add_each(connection, add_args(*range(8))))
    assert replies == [[], [], [1], [], [], [], [1], []]
    assert raw.lrange(b"jobs:queue", 0, -1) == ids(0, 1, 3, 4, 5, 7)


def test_a_few_calls_are_made_ahead_of_their_replies(connection: Connection) -> None:
    made = 0

    def calls() -> Iterator[Any]:
        nonlocal made
        for args in add_args(*range(20)):
            made += 1
            yield args

    replies = add_each(connection, calls())
    assert made == 0
    for answered in range(1, 21):
        assert next(replies) == []
        assert made >= 8
        assert made <= answered + WINDOW_CALLS


def test_unread_replies_leave_the_connection_usable(connection: Connection) -> None:
    replies = add_each(connection, add_args(*range(10)))
    assert next(replies) == []
    replies.close()
    assert connection.call("EXISTS", b"jobs:item:0") == 1


def test_a_read_that_cannot_be_sent_is_sent_again_once(
    connection: Connection, raw: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw.mset({b"%d" % number: number for number in range(9)})
    sent = []
    send = Link.send

    def cut_off(link: Link, requests: Any) -> int:
        sent.append(link)
        if len(sent) == 4:
            link._raw._sock.shutdown(socket.SHUT_RDWR)
        return send(link, requests)

    monkeypatch.setattr(Link, "send", cut_off)
    calls = [("GET", b"%d" % number) for number in range(9)]
    replies = connection.stream(calls, reads_only=True)
    assert list(replies) == [b"%d" % number for number in range(9)]


def test_a_refusal_before_exec_stops_the_transaction(connection: Connection, raw: Redis) -> None:
    good = [("SET", b"whole", b"x"), ("LPUSH", b"list", b"x")]
    bad = [("SET", b"half", b"x"), ("LPUSH", b"list")]
    answered: list[Any] = []
    with pytest.raises(ServerError) as caught:
        answered.extend(connection.stream(map(Transaction, [good, bad, *[good] * 8])))
    assert "wrong number of arguments" in caught.value.message
    assert raw.get(b"half") is None
    done = [reply for reply in answered if reply is not REFUSED]
    assert raw.llen(b"list") == len(done) <= 1 + WINDOW_CALLS
    assert connection.call("PING") is True


class TestRefusals:
    @pytest.mark.parametrize("unique", [False, True])
    def test_the_error_says_exactly_which_items_were_added(
        self, start_server: StartServer, unique: bool
    ) -> None:
        """Memory is short for a moment: the next call is refused, and those behind it are not."""
        private = start_server("--maxmemory-policy", "noeviction")
        raw = private.client()
        queue = WorkQueue(connect(Server(private.url)), QUEUE)

        def batch(first: int) -> NewItems:
            return NewItems([b"%d" % at for at in range(first, first + 10)], [b"x"] * 10)

        def batches() -> Iterator[NewItems | Flush]:
            yield batch(0)
            yield FLUSH
            raw.config_set("maxmemory", 1)
            yield batch(10)
            # When the second is answered the server has dealt with what was sent before the first.
            raw.ping()
            raw.ping()
            raw.config_set("maxmemory", 0)
            yield from map(batch, range(20, 400, 10))

        yielded: list[bytes] = []
        with pytest.raises(OutOfMemory) as caught:
            yielded.extend(
                outcome.item_id for outcome in add_batches(queue, batches(), unique=unique)
            )
        assert caught.value.acknowledged == 10
        ((first, count),) = caught.value.acknowledged_after
        assert first == 20
        assert 0 < count <= 10 * WINDOW_CALLS
        assert not caught.value.in_doubt
        added = ids(*range(10), *range(20, 20 + count))
        assert raw.lrange(b"jobs:queue", 0, -1) == added == yielded[::-1]

    def test_nothing_is_sent_again_after_a_refusal(
        self, connection: Connection, raw: Redis
    ) -> None:
        """A call is refused; then the server loses the script, and with it the calls after that."""
        list(add_each(connection, add_args(0)))

        def calls() -> Iterator[Any]:
            raw.set(b"jobs:delayed", b"text")
            yield from add_args(1)
            # When the second is answered the server has dealt with what was sent before the first.
            raw.ping()
            raw.ping()
            raw.script_flush()
            raw.delete(b"jobs:delayed")
            yield from add_args(*range(2, 30))

        answered: list[Any] = []
        with pytest.raises(WrongType):
            answered.extend(add_each(connection, calls()))
        assert answered == []
        assert raw.lrange(b"jobs:queue", 0, -1) == ids(0)


def test_a_connection_dropped_in_a_pause_is_replaced(connection: Connection, raw: Redis) -> None:
    def calls() -> Iterator[Any]:
        yield from add_args(0)
        yield None
        raw.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        yield from add_args(1, 2)

    assert list(add_each(connection, calls())) == [[], [], []]
    assert raw.lrange(b"jobs:queue", 0, -1) == ids(0, 1, 2)


def test_outstanding_replies_are_read_first(connection: Connection, raw: Redis) -> None:
    def calls() -> Iterator[Any]:
        for number, args in enumerate(add_args(*range(10))):
            # It is polled only while it would notice.
            assert not connection.stop.is_polled
            if number == 4:
                connection.stop.requested = True
            yield args

    answered: list[Any] = []
    with pytest.raises(KeyboardInterrupt):
        answered.extend(add_each(connection, calls()))
    assert answered == [[]] * 5
    assert raw.llen(b"jobs:queue") == 5
