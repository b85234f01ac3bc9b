"""Choosing items to act on: each once, and what looks broken only if it stays so."""

from typing import Any

import pytest
from redis import Redis

from rwq_cli.core import Selection, State, WorkQueue
from rwq_cli.core.inspect.listing import choose as choose_items
from tests.conftest import QUEUE, FakeClock, Foreign, Interleaved, contents

FUTURE_MS = 9_999_999_999_999
SELECTABLE = frozenset(State) - {State.STRAY_LEASE, State.GONE}


def states(*names: State) -> Selection:
    return Selection(states=frozenset(names))


@pytest.fixture
def one_of_each(raw: Redis, foreign: Foreign) -> None:
    """An item, or an entry, in each state that can be chosen, with the state's name for its ID."""
    foreign.waiting(b"waiting", b"duplicated")
    raw.lpush(b"jobs:queue", b"duplicated")
    foreign.leased(b"leased")
    foreign.leased(b"held", ttl_ms=None)
    foreign.abandoned(b"abandoned")
    foreign.data(b"orphaned", b"unlisted")
    foreign.lease(b"unlisted")
    foreign.delayed(b"delayed", FUTURE_MS)
    foreign.delayed(b"due", 1)
    foreign.buried(b"buried")
    raw.lpush(b"jobs:queue", b"ghost")
    raw.hset(b"jobs:item:wrong-type", "field", "value")
    raw.lpush(b"jobs:processing", b"wrong-type")


@pytest.mark.usefixtures("one_of_each")
def test_each_state_is_chosen_and_what_looks_broken_only_after_a_second_look(
    queue: WorkQueue, raw: Redis, clock: FakeClock
) -> None:
    before = contents(raw)
    for state in sorted(SELECTABLE):
        clock.slept_s.clear()
        expected = [state.value.encode()]
        if state is State.WAITING:
            # A list alone does not say that an entry of it is one too many.
            expected.append(b"duplicated")
        assert choose_items(queue, states(state), grace_s=2.5).ids == expected
        assert clock.slept_s == [2.5] * state.may_be_in_transit
    assert contents(raw) == before


def test_an_item_that_moves_during_the_walk_is_chosen_once(
    interleaved: Interleaved, raw: Redis, foreign: Foreign
) -> None:
    foreign.waiting(b"1", b"2")
    leased: list[Any] = []

    def lease_one(name: str) -> None:
        if name == "states" and not leased:
            leased.append(raw.rpoplpush(b"jobs:queue", b"jobs:processing"))
            foreign.lease(b"1")

    interleaved.before = lease_one
    chosen = choose_items(WorkQueue(interleaved, QUEUE), states(State.WAITING, State.LEASED))
    assert (leased, chosen.ids) == ([b"1"], [b"1", b"2"])
