"""Adding: who decides a duplicate, what is on the wire, and how much is read and sent at once."""

import socket
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from redis import Redis

from rwq_cli.core import (
    InvalidArgument,
    NewItem,
    Outcome,
    Server,
    ServerError,
    Status,
    WorkQueue,
    connect,
)
from rwq_cli.core.adding import ADD_ITEMS
from rwq_cli.core.batches import PAUSE, Pause
from rwq_cli.core.errors import ConnectionLost, Unreachable, WrongType
from rwq_cli.core.keys import QueueKeys
from tests.conftest import QUEUE, Backend, Foreign, Interleaved, StartServer, contents
from tests.core.test_keys import STRANGE

MEGABYTE = 1024 * 1024


def numbered(count: int, data: bytes = b"x") -> list[NewItem]:
    return [NewItem(b"%d" % number, data) for number in range(count)]


def test_one_item(queue: WorkQueue, raw: Redis) -> None:
    assert queue.add(b"some \x00\xff data", b"id") is True
    assert contents(raw) == {b"jobs:queue": [b"id"], b"jobs:item:id": b"some \x00\xff data"}


def test_empty_data_is_data(queue: WorkQueue, raw: Redis) -> None:
    assert queue.add(b"", b"id") is True
    assert contents(raw) == {b"jobs:queue": [b"id"], b"jobs:item:id": b""}


def test_items_are_pushed_on_the_left(queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
    foreign.waiting(b"before")
    outcomes = list(queue.add_many(numbered(3)))
    assert outcomes == [Outcome(b"%d" % number, Status.ADDED) for number in range(3)]
    assert raw.lrange(b"jobs:queue", 0, -1) == [b"2", b"1", b"0", b"before"]


def test_the_data_key_decides_a_duplicate(queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
    foreign.waiting(b"waiting")
    foreign.leased(b"leased")
    foreign.data(b"orphaned")
    foreign.buried(b"buried")
    before = contents(raw)
    ids = [b"waiting", b"leased", b"orphaned", b"buried"]
    outcomes = queue.add_many([NewItem(item_id, b"other") for item_id in ids])
    assert list(outcomes) == [Outcome(item_id, Status.DUPLICATE) for item_id in ids]
    assert queue.add(b"other", b"waiting") is False
    assert contents(raw) == before


def test_an_entry_without_data_is_no_duplicate(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    """A ghost is no item; the new item of that ID is one."""
    raw.lpush(b"jobs:processing", b"id")
    foreign.lease(b"id")
    assert queue.add(b"data", b"id") is True
    assert raw.get(b"jobs:item:id") == b"data"
    assert raw.lrange(b"jobs:queue", 0, -1) == [b"id"]


def test_a_duplicate_within_a_batch(queue: WorkQueue, raw: Redis) -> None:
    items = [NewItem(b"a", b"1"), NewItem(b"b", b"2"), NewItem(b"a", b"3"), NewItem(b"c", b"4")]
    assert list(queue.add_many(items)) == [
        Outcome(b"a", Status.ADDED),
        Outcome(b"b", Status.ADDED),
        Outcome(b"a", Status.DUPLICATE),
        Outcome(b"c", Status.ADDED),
    ]
    assert contents(raw) == {
        b"jobs:queue": [b"c", b"b", b"a"],
        b"jobs:item:a": b"1",
        b"jobs:item:b": b"2",
        b"jobs:item:c": b"4",
    }


def test_duplicates_in_later_batches(queue: WorkQueue, raw: Redis) -> None:
    """The server's indexes count within a batch, the outcomes over the whole stream."""
    raw.set(b"jobs:item:1500", b"old")
    statuses = [outcome.status for outcome in queue.add_many(numbered(2001))]
    assert statuses == [Status.ADDED] * 1500 + [Status.DUPLICATE] + [Status.ADDED] * 500
    assert raw.llen(b"jobs:queue") == 2000
    assert raw.get(b"jobs:item:1500") == b"old"


def test_only_one_of_two_adders_wins(
    interleaved: Interleaved, raw: Redis, foreign: Foreign
) -> None:
    """There is no read before the write, in which the other could slip."""
    interleaved.before = lambda _: raw.exists(b"jobs:item:id") or foreign.waiting(b"id")
    assert WorkQueue(interleaved, QUEUE).add(b"mine", b"id") is False
    assert interleaved.calls == ["add"]
    assert contents(raw) == {b"jobs:queue": [b"id"], b"jobs:item:id": b"data of id"}


def test_unique_skips_the_check(queue: WorkQueue, raw: Redis) -> None:
    outcomes = list(queue.add_many(numbered(1200), unique=True))
    assert outcomes == [Outcome(b"%d" % number, Status.ADDED) for number in range(1200)]
    assert raw.lrange(b"jobs:queue", 0, -1) == [b"%d" % number for number in range(1199, -1, -1)]
    assert raw.mget(f"jobs:item:{number}" for number in range(1200)) == [b"x"] * 1200


def test_unique_without_reason_replaces_and_lists_twice(queue: WorkQueue, raw: Redis) -> None:
    queue.add_unique(b"first", b"id")
    queue.add_unique(b"second", b"id")
    assert contents(raw) == {b"jobs:queue": [b"id", b"id"], b"jobs:item:id": b"second"}


@pytest.mark.parametrize("unique", [False, True])
@pytest.mark.parametrize("structure", ["queue", "processing", "delayed"])
def test_a_structure_of_the_wrong_type(
    queue: WorkQueue, raw: Redis, unique: bool, structure: str
) -> None:
    raw.set(f"jobs:{structure}", b"text")
    with pytest.raises(WrongType) as caught:
        list(queue.add_many(numbered(3), unique=unique))
    assert caught.value.acknowledged == 0
    assert contents(raw) == {b"jobs:" + structure.encode(): b"text"}


@pytest.mark.parametrize("structure", ["queue", "returns"])
def test_a_wrong_type_is_reported_with_the_keys_name(
    queue: WorkQueue, raw: Redis, structure: str
) -> None:
    raw.set(f"jobs:{structure}", b"text")
    with pytest.raises(WrongType) as caught:
        queue.add(b"data", b"id")
    assert f"jobs:{structure}" in caught.value.message


def test_an_empty_id_is_refused(queue: WorkQueue, raw: Redis) -> None:
    with pytest.raises(InvalidArgument) as caught:
        queue.add(b"data", b"")
    assert caught.value.message == "an item's ID is empty"
    assert caught.value.hint == "give it one, or let rwq make it"
    assert contents(raw) == {}


def test_an_empty_id_among_others_keeps_its_batch_out(queue: WorkQueue, raw: Redis) -> None:
    """And what was sent before it is told of: it is in."""
    added: list[Outcome] = []
    items = [*numbered(4 * ADD_ITEMS + 1), NewItem(b"", b"data")]
    with pytest.raises(InvalidArgument):
        added.extend(queue.add_many(items))
    told = [outcome.item_id for outcome in added]
    assert told == [item.item_id for item in items[: 4 * ADD_ITEMS]]
    assert raw.lrange(b"jobs:queue", 0, -1) == told[::-1]


@pytest.mark.parametrize("name", STRANGE)
def test_strange_names_are_taken_as_they_are(backend: Backend, raw: Redis, name: bytes) -> None:
    queue = WorkQueue(backend.connect(), name)
    items = [NewItem(item_id, item_id[::-1]) for item_id in STRANGE]
    assert [outcome.status for outcome in queue.add_many(items)] == [Status.ADDED] * len(STRANGE)
    assert contents(raw) == {
        name + b":queue": STRANGE[::-1],
        **{name + b":item:" + item_id: item_id[::-1] for item_id in STRANGE},
    }


def test_random_ids_are_new_each_time(queue: WorkQueue, raw: Redis) -> None:
    assert queue.add(b"data") is True
    queue.add_unique("text as UTF-8: ü")
    ids = raw.lrange(b"jobs:queue", 0, -1)
    assert len(set(ids)) == 2
    assert [raw.get(b"jobs:item:" + item_id) for item_id in ids] == [
        "text as UTF-8: ü".encode(),
        b"data",
    ]


def test_the_stream_is_read_a_few_batches_ahead_and_no_further(queue: WorkQueue) -> None:
    """It may never end; memory and the time to the first outcome stay bounded."""
    read = 0

    def endless() -> Iterator[NewItem]:
        nonlocal read
        while True:
            read += 1
            yield NewItem(b"%d" % read, b"data")

    outcomes = queue.add_many(endless())
    assert read == 0
    for told in range(1, 5 * ADD_ITEMS):
        assert next(outcomes) == Outcome(b"%d" % told, Status.ADDED)
        assert read <= told + 3 * ADD_ITEMS
    outcomes.batches.close()


def test_a_pause_in_the_stream_sends_what_is_there(queue: WorkQueue, raw: Redis) -> None:
    """The source is a pipe that has nothing more for now: what it gave is added, and told of."""
    told: list[Outcome] = []
    told_at_each_pause: list[int] = []

    def stream() -> Iterator[NewItem | Pause]:
        for item in numbered(4):
            yield item
            yield PAUSE
            told_at_each_pause.append(len(told))

    for outcome in queue.add_many(stream()):
        told.append(outcome)
    assert told == [Outcome(b"%d" % number, Status.ADDED) for number in range(4)]
    assert told_at_each_pause == [1, 2, 3, 4]
    assert raw.llen(b"jobs:queue") == 4


def items_in_each_call(interleaved: Interleaved) -> list[int]:
    """Filled with the number of items in each call of `add` from now on."""
    counts: list[int] = []
    # After the four prefixes, how to check and until when: ID, data, ID, data, ...
    interleaved.before = lambda _: counts.append((len(interleaved.words) - 6) // 2)
    return counts


def test_batches_are_cut_by_their_number(interleaved: Interleaved) -> None:
    counts = items_in_each_call(interleaved)
    items = iter(numbered(2 * ADD_ITEMS + 1))
    assert len(list(WorkQueue(interleaved, QUEUE).add_many(items))) == 2 * ADD_ITEMS + 1
    assert counts == [ADD_ITEMS, ADD_ITEMS, 1]


def test_batches_are_cut_by_their_bytes(interleaved: Interleaved, raw: Redis) -> None:
    counts = items_in_each_call(interleaved)
    items = numbered(10, b"m" * MEGABYTE)
    assert len(list(WorkQueue(interleaved, QUEUE).add_many(iter(items)))) == 10
    assert counts == [4, 4, 2]
    assert raw.strlen(b"jobs:item:9") == MEGABYTE


def test_an_item_larger_than_a_batch_closes_it(interleaved: Interleaved, raw: Redis) -> None:
    counts = items_in_each_call(interleaved)
    large = bytes(20 * MEGABYTE)
    items = [NewItem(b"a", b"1"), NewItem(b"large", large), NewItem(b"b", b"2")]
    assert len(list(WorkQueue(interleaved, QUEUE).add_many(items))) == 3
    assert counts == [2, 1]
    assert raw.get(b"jobs:item:large") == large


def test_a_server_that_dies_between_two_batches(start_server: StartServer) -> None:
    private = start_server()
    added: list[Outcome] = []

    def stream() -> Iterator[NewItem]:
        for number, item in enumerate(numbered(10 * ADD_ITEMS)):
            if number == 5 * ADD_ITEMS:
                private.kill()
            yield item

    with pytest.raises((ConnectionLost, Unreachable)) as caught:
        added.extend(WorkQueue(connect(Server(private.url)), QUEUE).add_many(stream()))
    assert caught.value.acknowledged == len(added)
    # All but what was sent ahead of its replies.
    assert 3 * ADD_ITEMS <= len(added) <= 5 * ADD_ITEMS
    assert added == [Outcome(b"%d" % number, Status.ADDED) for number in range(len(added))]


class Cutter:
    """Stands between a client and a server, and cuts the line when told.

    Attributes:
        url: Where to connect instead.
        cut: `None` passes everything on; `half` passes on half of the next request and hangs up;
            `reply` passes the next request on, and hangs up instead of passing on its reply.
    """

    def __init__(self, folder: Path, server: Path) -> None:
        self.cut: str | None = None
        self._server = server
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / "cutter"))
        self._listening.listen()
        self.url = f"unix://{folder / 'cutter'}"
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        client, _ = self._listening.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(self._server))
        back = Thread(target=self._pass_back, args=(server, client), daemon=True)
        back.start()
        while chunk := client.recv(65536):
            if self.cut == "half":
                server.sendall(chunk[: len(chunk) // 2])
                server.shutdown(socket.SHUT_RDWR)
                client.shutdown(socket.SHUT_RDWR)
                break
            server.sendall(chunk)
        server.shutdown(socket.SHUT_WR)
        back.join()
        client.close()
        server.close()

    def _pass_back(self, server: socket.socket, client: socket.socket) -> None:
        while chunk := server.recv(65536):
            if self.cut == "reply":
                client.shutdown(socket.SHUT_RDWR)
                return
            client.sendall(chunk)

    def close(self) -> None:
        self._listening.close()


@pytest.mark.parametrize("cut", ["half", "reply"])
@pytest.mark.parametrize("unique", [False, True])
def test_a_line_that_breaks_within_a_batch(
    start_server: StartServer, cut: str, unique: bool
) -> None:
    """What was acknowledged is in; each batch in flight is wholly in or wholly out."""
    private = start_server()
    cutter = Cutter(private.socket.parent, private.socket)
    added: list[Outcome] = []

    def stream() -> Iterator[NewItem]:
        for number, item in enumerate(numbered(20 * ADD_ITEMS)):
            if number == 5 * ADD_ITEMS:
                cutter.cut = cut
            yield item

    queue = WorkQueue(connect(Server(cutter.url)), QUEUE)
    with pytest.raises(ServerError) as caught:
        added.extend(queue.add_many(stream(), unique=unique))
    cutter.close()
    assert type(caught.value) is ConnectionLost
    assert caught.value.acknowledged == len(added)
    assert added == [Outcome(b"%d" % number, Status.ADDED) for number in range(len(added))]
    raw = private.client()
    reached = raw.llen(b"jobs:queue")
    assert reached % ADD_ITEMS == 0
    assert len(added) <= reached <= len(added) + 3 * ADD_ITEMS
    ids = [b"%d" % number for number in range(reached)]
    assert raw.lrange(b"jobs:queue", 0, -1) == ids[::-1]
    assert set(raw.keys()) == {b"jobs:queue", *map(QueueKeys(QUEUE).item, ids)}
