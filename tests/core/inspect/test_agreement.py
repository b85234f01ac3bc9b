"""Whoever asks for the state of an item is told the same, whatever else is in the queue."""

from collections import Counter

import pytest
from redis import Redis

from rwq_cli.core import Selection, Source, State, WorkQueue
from rwq_cli.core.inspect.choosing import choose as choose_items
from rwq_cli.core.inspect.report import inspect_items
from rwq_cli.core.items.export import export as export_items
from rwq_cli.core.items.journal import NoJournal
from rwq_cli.core.items.purge import count_items, purge as purge_queue
from rwq_cli.core.repair.doctor import diagnose
from rwq_cli.core.repair.finding_rules import findings_about
from rwq_cli.core.repair.findings import Code
from tests.conftest import Foreign
from tests.item_cases import BROKEN, ITEM_CASES

EVERYWHERE = Source(main=True, processing=True, delayed=True, buried=True, deep=True)
NOT_LISTED = (State.GONE, State.STRAY_LEASE)
IDS = [name.encode() for name in ITEM_CASES]


@pytest.fixture(params=[0, 31, 3000])
def states(request: pytest.FixtureRequest, raw: Redis, foreign: Foreign) -> dict[bytes, State]:
    """One of each among healthy items; their states."""
    pipeline = raw.pipeline()
    crowd = Foreign(pipeline)
    crowd.waiting(*(b"pad w%d" % number for number in range(request.param)))
    crowd.leased(*(b"pad l%d" % number for number in range(request.param)))
    pipeline.execute()
    for name, case in ITEM_CASES.items():
        case.make(foreign, name.encode())
    return {name.encode(): case.state for name, case in ITEM_CASES.items()}


def test_states_one_by_one_equal_those_of_all(queue: WorkQueue, states: dict[bytes, State]) -> None:
    assert {i: queue.state(i) for i in IDS} == states
    many = [*IDS, *(b"pad w%d" % number for number in range(600))]
    together = {report.facts.item_id: report.facts.state for report in inspect_items(queue, many)}
    assert {item_id: together[item_id] for item_id in IDS} == states


def test_a_deep_listing_has_the_same_states(queue: WorkQueue, states: dict[bytes, State]) -> None:
    listed: dict[bytes, set[State]] = {}
    for item in queue.items(EVERYWHERE, Selection(id_glob=b"[!p]*"), bare=True):
        listed.setdefault(item.item_id, set()).add(item.state)
    assert listed == {i: {state} for i, state in states.items() if state not in NOT_LISTED}


@pytest.mark.parametrize(
    "inner", [b"jobs:item:x", b"jobs:lease:x", b"jobs:leased_by_session:x", b"jobs:result:x"]
)
@pytest.mark.parametrize("has_lists", [True, False])
def test_what_may_belong_to_a_nested_queue_is_the_same_for_all(
    queue: WorkQueue, raw: Redis, foreign: Foreign, inner: bytes, has_lists: bool
) -> None:
    foreign.waiting(b"own")
    other = Foreign(raw, inner)
    if has_lists:
        other.waiting(b"w")
        other.leased(b"l")
    other.data(b"o")
    other.lease(b"stray", ttl_ms=None)
    keys = {inner + key for key in (b":item:o", b":lease:stray", b":leased_by_session:stray")}
    # If no list or sorted set makes it a queue, what looks like data is an item of this queue.
    orphans = set[bytes]()
    if inner == b"jobs:item:x" and not has_lists:
        orphans = {key.removeprefix(b"jobs:item:") for key in keys}
    items = {item.item_id for item in queue.items(EVERYWHERE, Selection(), bare=True)}
    assert items == {b"own", *orphans}
    counts = queue.counts(deep=True)
    assert (counts.orphaned, counts.stray_leases, counts.results) == (len(orphans), 0, 0)
    findings = {each.code: each.count for each in queue.diagnose(grace_s=0).findings}
    assert findings.get(Code.ORPHANED, 0) == len(orphans)
    assert not findings.keys() & {Code.STRAY_LEASE, Code.ENDLESS_LEASE, Code.FOREIGN_KEY}
    export = export_items(queue)
    assert {item.item_id for batch in export.batches() for item in batch} == items
    assert export.skipped.stray_leases == 0
    assert count_items(queue) == len(items)
    before = set(raw.keys())
    assert {outcome.item_id for outcome in purge_queue(queue, NoJournal(), grace_s=0)} == items
    assert before - set(raw.keys()) == {b"jobs:queue", b"jobs:item:own", *(keys if orphans else ())}


def test_leases_have_the_same_states(queue: WorkQueue, states: dict[bytes, State]) -> None:
    listed = {
        item.item_id: item.state for item in queue.leases(bare=True) if item.item_id in states
    }
    # That an item waits as well, a look at processing does not show.
    assert {i: s for i, s in listed.items() if states[i] is not State.DUPLICATED} == {
        item_id: states[item_id] for item_id in listed if states[item_id] is not State.DUPLICATED
    }


@pytest.mark.parametrize(
    "state", [State.ORPHANED, State.DUPLICATED, State.UNLISTED, State.HELD, State.ABANDONED]
)
def test_a_choice_by_state_has_the_same_states(
    queue: WorkQueue, states: dict[bytes, State], state: State
) -> None:
    chosen = choose_items(queue, Selection(states=frozenset({state}))).ids
    assert sorted(chosen) == sorted(i for i, each in states.items() if each is state)


def test_counts_agree_with_the_states(
    queue: WorkQueue, raw: Redis, states: dict[bytes, State]
) -> None:
    expected = Counter(states.values())
    counts = queue.counts(deep=True)
    padding = raw.exists(*(b"jobs:lease:pad l%d" % number for number in range(3000)))
    assert counts.leased == expected[State.LEASED] + padding
    assert (counts.held, counts.abandoned, counts.orphaned, counts.unlisted) == (
        *(expected[State.HELD], expected[State.ABANDONED]),
        *(expected[State.ORPHANED], expected[State.UNLISTED]),
    )
    assert (counts.duplicated, counts.ghosts, counts.stray_leases) == (
        *(expected[State.DUPLICATED], expected[State.GHOST], expected[State.STRAY_LEASE]),
    )


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
