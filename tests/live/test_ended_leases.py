"""A lease of ours is over as soon as a client that knows only one lease name has changed it."""

from collections.abc import Callable

import pytest
import redis

from rwq_cli.core import State, WorkQueue
from rwq_cli.core.keys import OWN_LEASE, QueueKeys
from tests.conftest import Backend, FakeClock, Foreign
from tests.live.foreign import Books, Upstream

# What a later client, which knows only `lease:<id>`, does to `a`, step by step; then its state.
Step = Callable[[redis.Redis, QueueKeys], object]
STEPS: dict[str, tuple[State, tuple[Step, ...]]] = {
    "another worker leases it": (
        State.LEASED,
        (lambda raw, keys: raw.set(keys.lease(b"a"), "theirs", px=60_000),),
    ),
    "that lease ends": (
        State.ABANDONED,
        (
            lambda raw, keys: raw.set(keys.lease(b"a"), "theirs", px=60_000),
            lambda raw, keys: raw.delete(keys.lease(b"a")),
        ),
    ),
    "all leases are cleared": (
        State.ABANDONED,
        (lambda raw, keys: raw.delete(*raw.keys(keys.lease_prefix + b"*")),),
    ),
    "it is completed": (
        State.GONE,
        (
            lambda raw, keys: raw.delete(keys.item(b"a")),
            lambda raw, keys: raw.lrem(keys.processing, 0, b"a"),
            lambda raw, keys: raw.delete(keys.lease(b"a")),
        ),
    ),
}


@pytest.fixture
def own(backend: Backend, clock: FakeClock) -> WorkQueue:
    """A queue whose holder is that of the command line."""
    return WorkQueue(backend.connect(), "jobs", holder=OWN_LEASE + b"me@here:1", clock=clock)


@pytest.mark.parametrize("name", STEPS)
def test_a_later_client_ends_our_lease_of(
    own: WorkQueue, raw: redis.Redis, keys: QueueKeys, foreign: Foreign, name: str
) -> None:
    foreign.waiting(b"a")
    assert [item.item_id for item in own.lease_many(1, for_s=3600)] == [b"a"]
    assert own.state(b"a") is State.LEASED
    state, steps = STEPS[name]
    for step in steps:
        step(raw, keys)
    assert own.state(b"a") is state
    touched = [outcome.status.value for outcome in own.touch_many([b"a"])]
    expected = {State.LEASED: "touched", State.ABANDONED: "not-leased", State.GONE: "missing"}
    assert touched == [expected[state]]
    if state is State.ABANDONED:
        assert [action.item_id for action in own.light_clean()] == [b"a"]
        assert raw.get(keys.old_lease(b"a")) is None


@pytest.mark.parametrize("is_deep", [False, True])
def test_our_old_lease_does_not_hide_a_reused_id(
    own: WorkQueue, raw: redis.Redis, keys: QueueKeys, foreign: Foreign, is_deep: bool
) -> None:
    """Completed by a later client, added again, and leased by a later worker that dies."""
    foreign.waiting(b"a")
    list(own.lease_many(1, for_s=3600))
    for step in STEPS["it is completed"][1]:
        step(raw, keys)
    later = Upstream(raw, keys.name, old=False, books=Books())
    list(later.produce(b"a", b"new"))
    worker = later.work()
    for _ in range(3):
        next(worker)
    assert own.state(b"a") is State.LEASED
    raw.delete(keys.lease(b"a"))
    assert raw.exists(keys.old_lease(b"a"))
    assert own.state(b"a") is State.ABANDONED
    actions = own.deep_clean() if is_deep else own.light_clean()
    assert [action.item_id for action in actions] == [b"a"]
    assert raw.lrange(keys.main, 0, -1) == [b"a"]
