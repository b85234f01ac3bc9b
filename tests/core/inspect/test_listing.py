"""Listings and choices: which items, in which order, and what reading them costs and changes."""

import re
from typing import Any

import pytest
from redis import Redis

from rwq_cli.core import Item, Lease, Selection, Source, State, WorkQueue
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.listing import choose, leases
from rwq_cli.core.inspect.selection import comparison
from tests.conftest import (
    QUEUE,
    AsUser,
    Foreign,
    Interleaved,
    supports_no_touch,
)
from tests.servers import PrivateServer
from tests.support import numbered

MAIN = Source(main=True)


def ids(items) -> list[bytes]:
    return [item.item_id for item in items]


def test_waiting_items_have_places_sizes_previews(
    queue: WorkQueue, raw: Redis, foreign: Foreign
) -> None:
    foreign.waiting(b"1", b"2")
    raw.set(b"jobs:item:2", bytes(250))
    raw.lpush(b"jobs:queue", b"ghost")
    sizes = supports_no_touch(raw)
    items = list(queue.items(MAIN))
    # Idle times are differences of whole seconds: a moment may be one of them.
    assert [item.idle_s in (0, 1) for item in items] == [True, True, False]
    assert [item._replace(idle_s=None) for item in items] == [
        Item(
            *(b"jobs", b"1", State.WAITING),
            payload_bytes=9 if sizes else None,
            preview=b"data of 1" if sizes else None,
            position=0,
        ),
        Item(
            *(b"jobs", b"2", State.WAITING),
            payload_bytes=250 if sizes else None,
            preview=bytes(200) if sizes else None,
            position=1,
        ),
        Item(*(b"jobs", b"ghost", State.GHOST), position=2),
    ]


@pytest.mark.parametrize(
    ("glob", "selected"),
    [
        (b"*", [b"job-1", b"job-22", b"\xff\n", b"JOB-3", b"a[1]"]),
        (b"job-?", [b"job-1"]),
        (b"[jJ]*-[!2]", [b"job-1", b"JOB-3"]),
        (b"a[[]1]", [b"a[1]"]),
        (b"\xff*", [b"\xff\n"]),
        (b"1", []),
    ],
)
def test_items_are_listed_and_chosen_by_their_ids(
    queue: WorkQueue, foreign: Foreign, glob: bytes, selected: list[bytes]
) -> None:
    foreign.waiting(b"job-1", b"job-22", b"\xff\n", b"JOB-3", b"a[1]")
    selection = Selection(frozenset({State.WAITING}), id_glob=glob)
    assert ids(queue.items(MAIN, selection)) == choose(queue, selection).ids == selected


def test_items_are_selected_by_data(queue: WorkQueue, raw: Redis, foreign: Foreign) -> None:
    foreign.waiting(*numbered(250, b"%d"))
    raw.set(b"jobs:item:42", b"\x00x\xff" * 5000 + b"end")
    raw.delete(b"jobs:item:43")
    matching = Selection(match=re.compile(rb"of \d?[12]1$|\xffend").search)
    items = list(queue.items(MAIN, matching))
    assert ids(items) == [b"11", b"21", b"42", b"111", b"121", b"211", b"221"]
    # What was read to choose is not handed on unless asked for.
    assert {item.data for item in items} == {None}
    (item,) = queue.items(MAIN, matching, offset=2, limit=1, data=True)
    assert item.data == b"\x00x\xff" * 5000 + b"end"


@pytest.mark.parametrize(("seconds", "selected"), [(2, [b"old"]), (0, [b"old", b"new"])])
def test_items_are_listed_and_chosen_by_idle_time(
    queue: WorkQueue, raw: Redis, foreign: Foreign, seconds: float, selected: list[bytes]
) -> None:
    foreign.waiting(b"old")
    raw.lpush(b"jobs:queue", b"ghost")
    foreign.waiting(b"new")
    foreign.unused_for(b"old", 2)
    selection = Selection(frozenset({State.WAITING}), older_than_s=seconds)
    assert ids(queue.items(MAIN, selection)) == choose(queue, selection).ids == selected


def test_the_most_urgent_lease_comes_first(queue: WorkQueue, foreign: Foreign) -> None:
    foreign.leased(b"late", holder=b"worker-1", ttl_ms=500_000)
    foreign.abandoned(b"dead 1")
    foreign.leased(b"held", holder=b"worker-2", ttl_ms=None)
    foreign.leased(b"soon", holder=b"worker-22", ttl_ms=5000)
    foreign.raw.lpush(b"jobs:processing", b"ghost")
    foreign.abandoned(b"dead 2")
    items = list(leases(queue))
    assert [(item.item_id, item.state) for item in items] == [
        (b"dead 1", State.ABANDONED),
        (b"ghost", State.GHOST),
        (b"dead 2", State.ABANDONED),
        (b"soon", State.LEASED),
        (b"late", State.LEASED),
        (b"held", State.HELD),
    ]
    assert items[-1].lease == Lease(b"worker-2", None)


@pytest.mark.parametrize(
    ("selection", "selected"),
    [
        # A guard has no holder.
        (Selection(holder_glob=b"*"), [b"l1", b"l2"]),
        (Selection(holder_glob=b"*2"), [b"l2"]),
        (Selection(reason_glob=b"no *"), [b"b1"]),
        (Selection(reason_glob=b"*"), [b"b1", b"b2"]),
        (Selection(returns=comparison(">=2")), [b"l2", b"b1"]),
        (Selection(returns=comparison("0")), [b"w", b"l1", b"a", b"b2"]),
        (Selection(frozenset({State.BURIED}), returns=comparison(">1")), [b"b1"]),
    ],
)
def test_items_are_selected_by_facts(
    queue: WorkQueue, foreign: Foreign, selection: Selection, selected: list[bytes]
) -> None:
    foreign.waiting(b"w")
    foreign.leased(b"l1", holder=b"worker-1")
    foreign.leased(b"l2", holder=b"worker-2")
    foreign.abandoned(b"a")
    foreign.buried(b"b1", b"no such table")
    foreign.buried(b"b2", b"exit 2")
    foreign.raw.hset("jobs:returns", mapping={"l2": 2, "b1": 5})
    assert ids(queue.items(ALL, selection)) == choose(queue, selection).ids == selected


@pytest.mark.parametrize("text", ["", ">", "=>1", "-1", "1.5", "x", "1 2", "9" * 16])
def test_a_comparison_has_one_whole_number(text: str) -> None:
    with pytest.raises(InvalidArgument, match="is not a number"):
        comparison(text)


@pytest.mark.parametrize(
    ("text", "holding"),
    [
        *(("2", [2]), ("=2", [2]), ("!=2", [0, 1, 3]), ("<2", [0, 1]), ("<=2", [0, 1, 2])),
        *((">2", [3]), (" >= 2 ", [2, 3])),
    ],
)
def test_comparisons(text: str, holding: list[int]) -> None:
    assert [n for n in range(4) if comparison(text)(n)] == holding


def test_a_server_that_denies_optional_commands(as_user: AsUser, server: PrivateServer) -> None:
    """Without CLIENT nothing that counts as use is read unasked; without OBJECT no age."""
    raw = server.client()
    Foreign(raw).waiting(b"1")
    queue = WorkQueue(as_user("+@all", "-client", "-object"), QUEUE)
    plain = Item(b"jobs", b"1", State.WAITING, position=0)
    assert list(queue.items(MAIN)) == [plain]
    (item,) = queue.items(MAIN, data=True)
    assert (item.data, item.payload_bytes, item.idle_s) == (b"data of 1", 9, None)


ALL = Source(main=True, processing=True, delayed=True, buried=True)


def test_an_item_moving_during_the_walk_is_chosen_once(
    interleaved: Interleaved, raw: Redis, foreign: Foreign
) -> None:
    foreign.waiting(b"1", b"2")
    leased: list[Any] = []

    def lease_one(name: str) -> None:
        if name == "states" and not leased:
            leased.append(raw.rpoplpush(b"jobs:queue", b"jobs:processing"))
            foreign.lease(b"1")

    interleaved.before = lease_one
    chosen = choose(
        WorkQueue(interleaved, QUEUE), Selection(frozenset({State.WAITING, State.LEASED}))
    )
    assert (leased, chosen.ids) == ([b"1"], [b"1", b"2"])
