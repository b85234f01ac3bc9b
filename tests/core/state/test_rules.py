"""From facts to a state: every row of the protocol's table, and no facts without a state."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis

from rwq_cli.core import Facts, Lease, State, WorkQueue, state_of
from rwq_cli.core.inspect.report import _leases, effective_lease, probe
from rwq_cli.core.keys import QueueKeys
from rwq_cli.core.repair.finding_rules import facts_of_many
from rwq_cli.core.state.rules import is_guard
from rwq_cli.core.state.snapshot import Skipped, find_snapshots
from tests.conftest import Foreign

NOW_MS = 1_700_000_000_000

NOTHING = Facts(
    item_id=b"1",
    has_data=False,
    in_main=0,
    in_processing=0,
    in_cleaning=0,
    lease=None,
    due_ms=None,
    buried_ms=None,
    now_ms=NOW_MS,
)
DATA = replace(NOTHING, has_data=True)

ENDS = Lease(b"them", 1000)
ENDLESS = Lease(b"them", None)
DELAY_GUARD = Lease(b"rwq-delayed:", 60_000)
BURY_GUARD = Lease(b"rwq-buried:broken", None)
CLEAN_GUARD = Lease(b"rwq-clean:0123", 120_000)


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        (replace(DATA, in_main=1), State.WAITING),
        # A cleaner came between a worker's pop and its lease: a worker can have it, so it waits.
        (replace(DATA, in_main=1, lease=ENDS), State.WAITING),
        (replace(DATA, in_main=1, due_ms=NOW_MS + 1), State.WAITING),
        (replace(DATA, in_main=1, buried_ms=NOW_MS, lease=BURY_GUARD), State.WAITING),
        (replace(DATA, in_processing=1, lease=ENDS), State.LEASED),
        (replace(DATA, in_processing=2, lease=ENDS), State.LEASED),
        (replace(DATA, in_processing=1, in_cleaning=1, lease=ENDS), State.LEASED),
        (replace(DATA, in_processing=1, lease=ENDLESS), State.HELD),
        (replace(DATA, lease=ENDLESS), State.HELD),
        (replace(DATA, in_processing=1), State.ABANDONED),
        (replace(DATA, in_processing=1, in_cleaning=1), State.ABANDONED),
        (DATA, State.ORPHANED),
        (replace(DATA, in_cleaning=1), State.ORPHANED),
        (replace(DATA, lease=ENDS), State.UNLISTED),
        (replace(DATA, in_cleaning=1, lease=ENDS), State.UNLISTED),
        (replace(DATA, lease=CLEAN_GUARD), State.UNLISTED),
        (replace(DATA, due_ms=NOW_MS + 1, lease=DELAY_GUARD), State.DELAYED),
        (replace(DATA, due_ms=NOW_MS + 1), State.DELAYED),
        (replace(DATA, due_ms=NOW_MS, lease=DELAY_GUARD), State.DUE),
        (replace(DATA, due_ms=NOW_MS - 1, lease=DELAY_GUARD), State.DUE),
        (replace(DATA, buried_ms=NOW_MS, lease=BURY_GUARD), State.BURIED),
        (replace(DATA, buried_ms=NOW_MS, in_processing=1, lease=BURY_GUARD), State.BURIED),
        # A worker took it after all: its lease, not our old entry, says what it is.
        (replace(DATA, buried_ms=NOW_MS, in_processing=1, lease=ENDS), State.LEASED),
        (replace(DATA, due_ms=NOW_MS + 1, in_processing=1, lease=ENDS), State.LEASED),
        (replace(DATA, in_main=2), State.DUPLICATED),
        (replace(DATA, in_main=1, in_processing=1), State.DUPLICATED),
        (replace(DATA, in_main=1, in_processing=1, lease=ENDS), State.DUPLICATED),
        (replace(NOTHING, in_main=1), State.GHOST),
        (replace(NOTHING, in_processing=1), State.GHOST),
        (replace(NOTHING, in_processing=1, lease=ENDS), State.GHOST),
        (replace(NOTHING, due_ms=NOW_MS), State.GHOST),
        (replace(NOTHING, buried_ms=NOW_MS, lease=BURY_GUARD), State.GHOST),
        (replace(NOTHING, lease=ENDS), State.STRAY_LEASE),
        (replace(NOTHING, lease=ENDLESS), State.STRAY_LEASE),
        (NOTHING, State.GONE),
        (replace(NOTHING, returns=3), State.GONE),
        (replace(DATA, in_main=1, wrong_types={b"jobs:queue": "string"}), State.WRONG_TYPE),
        (replace(NOTHING, wrong_types={b"jobs:item:1": "hash"}), State.WRONG_TYPE),
    ],
)
def test_the_state_table(facts: Facts, state: State) -> None:
    assert state_of(facts) is state


def test_the_table_above_has_every_state() -> None:
    (table,) = (mark for mark in test_the_state_table.pytestmark if mark.name == "parametrize")
    assert {state for _, state in table.args[1]} == set(State)


@pytest.mark.parametrize(
    ("lease", "guard"),
    [
        (None, False),
        (ENDS, False),
        (CLEAN_GUARD, False),
        (Lease(b"rwq-delayed", 1), False),
        (Lease(b"x rwq-buried:", None), False),
        (DELAY_GUARD, True),
        (BURY_GUARD, True),
    ],
)
def test_what_a_guard_is(lease: Lease | None, guard: bool) -> None:
    assert is_guard(lease) is guard


LEASES = st.none() | st.builds(
    Lease,
    st.sampled_from((b"them", b"", b"rwq-delayed:", b"rwq-buried:x", b"rwq-clean:1")),
    st.none() | st.integers(0, 10**9),
)
ANY_FACTS = st.builds(
    Facts,
    item_id=st.binary(max_size=4),
    has_data=st.booleans(),
    in_main=st.integers(0, 3),
    in_processing=st.integers(0, 3),
    in_cleaning=st.integers(0, 2),
    lease=LEASES,
    due_ms=st.none() | st.integers(NOW_MS - 2, NOW_MS + 2),
    buried_ms=st.none() | st.integers(0, NOW_MS),
    now_ms=st.just(NOW_MS),
    returns=st.none() | st.integers(0, 9),
    wrong_types=st.just({}) | st.just({b"jobs:queue": "set"}),
)


@given(ANY_FACTS)
def test_all_facts_have_a_state(facts: Facts) -> None:
    state = state_of(facts)
    assert isinstance(state, State)
    if facts.wrong_types:
        assert state is State.WRONG_TYPE
    else:
        # The item exists exactly while its data key exists.
        nothing_there = state in (State.GHOST, State.STRAY_LEASE, State.GONE)
        assert nothing_there is not facts.has_data
        assert (state in (State.WAITING, State.DUPLICATED)) is (
            facts.has_data and facts.in_main > 0
        )


@given(ANY_FACTS, st.integers(0, 9), st.integers(0, 2))
def test_returns_and_the_old_cleaners_list_decide_nothing(
    facts: Facts, returns: int, in_cleaning: int
) -> None:
    assert state_of(facts) is state_of(replace(facts, returns=returns, in_cleaning=in_cleaning))


# What a lease key's time left may be, milliseconds: endless, some, more; or there is no key.
TIMES_MS = [None, 40_000, 80_000, "absent"]


def arrange_leases(raw: Redis, keys: QueueKeys, new_ms, old_ms) -> Lease | None:
    """Set an item's lease keys; return the lease that they mean."""
    raw.set(keys.item(b"1"), b"data")
    leases = []
    for key, holder, ttl_ms in (
        (keys.lease(b"1"), b"new", new_ms),
        (keys.old_lease(b"1"), b"old", old_ms),
    ):
        if ttl_ms != "absent":
            raw.set(key, holder, px=ttl_ms)
            leases.append(Lease(holder, ttl_ms))
    endless = [lease for lease in leases if not lease.ends]
    return endless[0] if endless else max(leases, key=lambda lease: lease.ttl_ms, default=None)


def assert_same_lease(found: Lease | None, meant: Lease | None, *, any_holder: bool) -> None:
    if found is None or meant is None:
        assert found is meant
        return
    # Of two that end at the same millisecond either may speak, and they need not be that close.
    assert any_holder or found.holder == meant.holder
    assert found.ends is meant.ends
    if meant.ttl_ms is not None:
        assert meant.ttl_ms - 5000 < found.ttl_ms <= meant.ttl_ms


@pytest.mark.parametrize("new_ms", TIMES_MS)
@pytest.mark.parametrize("old_ms", TIMES_MS)
def test_of_two_lease_keys_the_later_ending_one_speaks(
    queue: WorkQueue, raw: Redis, keys: QueueKeys, new_ms, old_ms
) -> None:
    meant = arrange_leases(raw, keys, new_ms, old_ms)
    (look,) = probe(queue, [b"1"])
    assert look.has_data is True
    assert_same_lease(look.lease, meant, any_holder=new_ms == old_ms)


@pytest.mark.real_only("the fake has no OBJECT, which the facts are read with")
@pytest.mark.parametrize("new_ms", TIMES_MS)
@pytest.mark.parametrize("old_ms", TIMES_MS)
def test_the_facts_merge_two_lease_keys_the_same_way(
    queue: WorkQueue, raw: Redis, keys: QueueKeys, new_ms, old_ms
) -> None:
    meant = arrange_leases(raw, keys, new_ms, old_ms)
    (item_report,) = queue.facts([b"1"])
    assert_same_lease(item_report.facts.lease, meant, any_holder=new_ms == old_ms)
    assert item_report.lease_keys == tuple(
        key
        for key, ttl_ms in ((keys.lease(b"1"), new_ms), (keys.old_lease(b"1"), old_ms))
        if ttl_ms != "absent"
    )


@given(LEASES, LEASES)
def test_merging_gives_a_sessions_lease_or_of_a_kind_the_last_to_end(
    new: Lease | None, old: Lease | None
) -> None:
    def reply(lease: Lease | None) -> tuple[int, bytes | None]:
        """What PTTL and GET say of it."""
        if lease is None:
            return -2, None
        return -1 if lease.ttl_ms is None else lease.ttl_ms, lease.holder

    seen = _leases((b"new", *reply(new)), (b"old", *reply(old)))
    merged = effective_lease(lease for _, lease in seen)
    given_leases = [lease for lease in (new, old) if lease is not None]
    assert (merged in given_leases) if given_leases else (merged is None)
    for lease in given_leases:
        assert is_guard(lease) or not is_guard(merged)
        assert is_guard(lease) is not is_guard(merged) or end_ms(merged) >= end_ms(lease)


@pytest.mark.parametrize("worker_name", ["new", "old"])
@pytest.mark.parametrize("guard", [b"rwq-buried:broken", b"rwq-delayed:1"])
@pytest.mark.parametrize("guard_ms", [None, 1000, 80_000])
@pytest.mark.parametrize("worker_ms", [None, 40_000])
def test_a_sessions_lease_speaks_before_a_guard_whichever_ends_later(
    queue: WorkQueue,
    raw: Redis,
    keys: QueueKeys,
    worker_name: str,
    guard: bytes,
    guard_ms: int | None,
    worker_ms: int | None,
) -> None:
    names = (keys.lease(b"1"), keys.old_lease(b"1"))
    worker_key, guard_key = names if worker_name == "new" else names[::-1]
    raw.set(keys.item(b"1"), b"data")
    raw.lpush(keys.processing, b"1")
    raw.zadd(keys.buried, {b"1": NOW_MS})
    raw.set(worker_key, b"them", px=worker_ms)
    raw.set(guard_key, guard, px=guard_ms)
    (look,) = probe(queue, [b"1"])
    assert_same_lease(look.lease, Lease(b"them", worker_ms), any_holder=False)
    (facts,) = facts_of_many(queue, [b"1"])
    assert_same_lease(facts.lease, Lease(b"them", worker_ms), any_holder=False)
    assert state_of(facts) is (State.HELD if worker_ms is None else State.LEASED)
    state = State.HELD if worker_ms is None else State.LEASED
    (snapshot,) = next(find_snapshots(queue, [b"1"], Skipped()))
    assert_same_lease(snapshot.lease, Lease(b"them", worker_ms), any_holder=False)
    assert snapshot.state is state


@pytest.mark.real_only("the fake has no OBJECT, which the facts are read with")
def test_the_facts_of_one_have_the_lease_of_the_session(
    queue: WorkQueue, raw: Redis, keys: QueueKeys, foreign: Foreign
) -> None:
    foreign.buried(b"1")
    raw.lpush(keys.processing, b"1")
    raw.set(keys.old_lease(b"1"), b"them", px=40_000)
    (item_report,) = queue.facts([b"1"])
    assert_same_lease(item_report.facts.lease, Lease(b"them", 40_000), any_holder=False)
    assert state_of(item_report.facts) is State.LEASED


def end_ms(lease: Lease) -> float:
    return float("inf") if lease.ttl_ms is None else lease.ttl_ms
