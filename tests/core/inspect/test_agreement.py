"""Whoever asks for the state of an item is told the same, whatever else is in the queue."""

from collections import Counter

import pytest
from redis import Redis

from rwq_cli.core import Selection, State, WorkQueue
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.listing import choose as choose_items, leases
from rwq_cli.core.inspect.lookup import inspect_items
from rwq_cli.core.items.export import Export
from rwq_cli.core.items.purge import purge as purge_queue
from rwq_cli.core.repair.doctor import diagnose
from rwq_cli.core.repair.findings import Code, findings_about
from tests.broken_queues import pad
from tests.conftest import Foreign, contents
from tests.core.verbs import EVERYWHERE
from tests.item_cases import BROKEN, ITEM_CASES
from tests.support import numbered

COUNTED = (
    *("leased", "held", "abandoned", "due", "orphaned", "unlisted"),
    *("duplicated", "ghosts", "stray_leases", "wrong_types"),
)
NOT_LISTED = (State.GONE, State.STRAY_LEASE)
IDS = [name.encode() for name in ITEM_CASES]
# More than are looked for by name.
NEVER = numbered(600, b"never %d")


@pytest.fixture(params=[0, 3000])
def states(request: pytest.FixtureRequest, raw: Redis, foreign: Foreign) -> dict[bytes, State]:
    """One of each among healthy items; their states."""
    pad(raw, foreign.keys, request.param)
    for name, case in ITEM_CASES.items():
        case.make(foreign, name.encode())
    return {name.encode(): case.state for name, case in ITEM_CASES.items()}


def test_listings_and_choices_have_the_same_states(
    queue: WorkQueue, states: dict[bytes, State]
) -> None:
    assert {i: queue.state(i) for i in IDS} == states
    together = {r.facts.item_id: r.facts.state for r in inspect_items(queue, [*IDS, *NEVER])}
    assert {item_id: together[item_id] for item_id in IDS} == states
    listed: dict[bytes, set[State]] = {}
    for item in queue.items(EVERYWHERE, Selection(id_glob=b"[!p]*"), bare=True):
        listed.setdefault(item.item_id, set()).add(item.state)
    assert listed == {i: {state} for i, state in states.items() if state not in NOT_LISTED}
    leased = {i.item_id: i.state for i in leases(queue, bare=True) if i.item_id in states}
    # That an item waits as well, a look at processing does not show.
    duplicated = {i for i in leased if states[i] is State.DUPLICATED}
    assert {i: s for i, s in leased.items() if i not in duplicated} == {
        i: states[i] for i in leased if i not in duplicated
    }
    for state in (State.ORPHANED, State.DUPLICATED, State.UNLISTED, State.HELD, State.ABANDONED):
        chosen = choose_items(queue, Selection(states=frozenset({state}))).ids
        assert sorted(chosen) == sorted(i for i, each in states.items() if each is state)


@pytest.mark.parametrize("inner", [b"jobs:item:x", b"jobs:lease:x", b"jobs:result:x"])
def test_the_keys_of_a_nested_queue_are_nobody_elses(
    queue: WorkQueue, raw: Redis, foreign: Foreign, inner: bytes
) -> None:
    foreign.waiting(b"own")
    other = Foreign(raw, inner)
    other.waiting(b"w")
    other.leased(b"l")
    other.data(b"o")
    other.lease(b"stray", ttl_ms=None)
    items = {item.item_id for item in queue.items(EVERYWHERE, Selection(), bare=True)}
    assert items == {b"own"}
    counts = queue.counts(deep=True)
    assert (counts.orphaned, counts.stray_leases, counts.results) == (0, 0, 0)
    findings = {each.code: each.count for each in queue.diagnose(grace_s=0).findings}
    assert findings[Code.SHADOWED_NAME] == 1
    assert not findings.keys() & {Code.ORPHANED, Code.STRAY_LEASE, Code.ENDLESS_LEASE}
    export = Export(queue)
    assert {item.item_id for batch in export.batches() for item in batch} == items
    assert export.skipped.stray_leases == 0
    before = contents(raw)
    assert queue.deep_clean() == []
    with pytest.raises(InvalidArgument, match=f"{inner.decode()} look like items of jobs"):
        list(purge_queue(queue, None, grace_s=0))
    assert contents(raw) == before


def test_counts_agree_with_the_states(
    queue: WorkQueue, raw: Redis, states: dict[bytes, State]
) -> None:
    number = Counter(states.values())
    padding = raw.exists(*(b"jobs:lease:pad-%d" % number for number in range(1, 3001)))
    counts = queue.counts(deep=True)
    found = {name: getattr(counts, name) for name in COUNTED}
    assert found == {
        **{name: number[State(name)] for name in COUNTED[:-4]},
        "duplicated": number[State.DUPLICATED],
        "ghosts": number[State.GHOST],
        "stray_leases": number[State.STRAY_LEASE],
        "wrong_types": number[State.WRONG_TYPE],
        "leased": number[State.LEASED] + padding,
    }


def test_the_doctor_finds_what_the_facts_of_each_say(
    queue: WorkQueue, states: dict[bytes, State]
) -> None:
    found: dict[bytes, set[Code]] = {}
    for finding in diagnose(queue, all_ids=True).findings:
        for item_id in () if finding.of_keys else finding.examples:
            found.setdefault(item_id, set()).add(finding.code)
    named = [i for i in IDS if states[i] is not State.WRONG_TYPE]
    expected = {r.facts.item_id: {*findings_about(r.facts)} for r in inspect_items(queue, named)}
    assert found == {item_id: codes for item_id, codes in expected.items() if codes}
    assert found == {
        name.encode(): {*case.findings}
        for name, case in BROKEN.items()
        if case.state is not State.WRONG_TYPE
    }
