"""What was chosen is checked again in the script that acts: what is different by then is left."""

from collections.abc import Callable, Iterable

import pytest
from redis import Redis

from rwq_cli.core import Outcome, State, Status, WorkQueue
from rwq_cli.core.inspect.choosing import choose as choose_items
from rwq_cli.core.inspect.selection import Selection
from rwq_cli.core.items.complete import complete as complete_items
from rwq_cli.core.items.journal import NoJournal
from rwq_cli.core.items.move import move as move_items
from rwq_cli.core.items.remove import remove as remove_items
from rwq_cli.core.items.schedule import (
    bury as bury_items,
    release as release_items,
)
from rwq_cli.core.state.expected import Expected, fingerprint
from tests.conftest import Foreign

Verb = Callable[[WorkQueue, Iterable[bytes], Expected], Iterable[Outcome]]

VERBS: dict[str, Verb] = {
    "complete": lambda queue, ids, expected: complete_items(queue, ids, expected=expected),
    "release": lambda queue, ids, expected: release_items(
        queue, ids, expected=expected, force=True
    ),
    "release to the front": lambda queue, ids, expected: release_items(
        queue, ids, expected=expected, force=True, front=True
    ),
    "release later": lambda queue, ids, expected: release_items(
        queue, ids, expected=expected, force=True, delay_s=60
    ),
    "bury": lambda queue, ids, expected: bury_items(queue, ids, expected=expected, force=True),
    "remove": lambda queue, ids, expected: remove_items(queue, ids, NoJournal(), expected=expected),
    "move": lambda queue, ids, expected: move_items(
        queue, ids, b"other", NoJournal(), expected=expected, force=True
    ),
}
each_verb = pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
# Few are looked for by name; many in pages, and in batches if they are in no list.
few_or_many = pytest.mark.parametrize("others", [0, 40], ids=["few", "many"])


def run(
    queue: WorkQueue, verb: Verb, others: list[bytes], expected: Expected
) -> tuple[Status, set[Status]]:
    """What becomes of `x`, and of the others."""
    outcomes = {o.item_id: o.status for o in verb(queue, [b"x", *others], expected)}
    assert set(outcomes) == {b"x", *others}
    return outcomes.pop(b"x"), set(outcomes.values())


WAS: dict[str, Callable[[Foreign, bytes], object]] = {
    "waiting": lambda foreign, item_id: foreign.waiting(item_id),
    "abandoned": lambda foreign, item_id: foreign.abandoned(item_id),
    "orphaned": lambda foreign, item_id: foreign.data(item_id),
    "delayed": lambda foreign, item_id: foreign.delayed(item_id, 10**13),
    "buried": lambda foreign, item_id: foreign.buried(item_id),
    "leased": lambda foreign, item_id: foreign.leased(item_id),
}


@each_verb
@few_or_many
@pytest.mark.parametrize("state", ["waiting", "abandoned"])
def test_an_item_that_a_worker_leased_meanwhile_is_left_to_it(
    queue: WorkQueue, raw: Redis, foreign: Foreign, verb: Verb, others: int, state: str
) -> None:
    """It was chosen as waiting or abandoned; while the user was asked, a live worker took it."""
    rest = [b"other %d" % number for number in range(others)]
    for item_id in rest:
        WAS[state](foreign, item_id)
    foreign.leased(b"x")
    keys = (b"jobs:item:x", b"jobs:lease:x", b"jobs:leased_by_session:x")
    before = raw.mget(keys)
    status, statuses = run(queue, verb, rest, Expected(states=frozenset({State(state)})))
    assert status is Status.CHANGED
    assert Status.CHANGED not in statuses
    assert raw.mget(keys) == before
    assert raw.lrange(b"jobs:processing", 0, -1).count(b"x") == 1


@each_verb
@few_or_many
@pytest.mark.parametrize("state", WAS)
def test_an_item_that_is_still_what_it_was_chosen_for_is_acted_on(
    queue: WorkQueue, foreign: Foreign, verb: Verb, others: int, state: str
) -> None:
    rest = [b"other %d" % number for number in range(others)]
    for item_id in (b"x", *rest):
        WAS[state](foreign, item_id)
    states = frozenset({State(state), State.HELD})
    status, statuses = run(queue, verb, rest, Expected(states=states))
    assert status is not Status.CHANGED
    assert statuses <= {status}


@pytest.mark.needs("no-touch")
@each_verb
@few_or_many
def test_an_item_that_was_used_meanwhile_is_left(
    queue: WorkQueue, raw: Redis, foreign: Foreign, verb: Verb, others: int
) -> None:
    rest = [b"other %d" % number for number in range(others)]
    foreign.waiting(b"x", *rest)
    for item_id in rest:
        foreign.unused_for(item_id, 5000)
    status, statuses = run(queue, verb, rest, Expected(idle_s=3600))
    assert status is Status.CHANGED
    assert Status.CHANGED not in statuses
    assert raw.get(b"jobs:item:x") == b"data of x"
    assert b"x" in raw.lrange(b"jobs:queue", 0, -1)


@each_verb
@few_or_many
def test_an_item_with_other_data_than_were_read_is_left(
    queue: WorkQueue, raw: Redis, foreign: Foreign, verb: Verb, others: int
) -> None:
    """Completed and added anew under the same ID."""
    rest = [b"other %d" % number for number in range(others)]
    foreign.waiting(b"x", *rest)
    read = {item_id: fingerprint(b"data of " + item_id) for item_id in (b"x", *rest)}
    raw.set(b"jobs:item:x", b"data of y")
    status, statuses = run(queue, verb, rest, Expected(fingerprints=read))
    assert status is Status.CHANGED
    assert Status.CHANGED not in statuses
    assert raw.get(b"jobs:item:x") == b"data of y"


@pytest.mark.parametrize("change", ["length", "beginning", "end"])
def test_large_data_is_compared_by_length_and_both_ends(
    queue: WorkQueue, raw: Redis, foreign: Foreign, change: str
) -> None:
    foreign.waiting(b"x")
    data = b"b" + b"x" * 3_000_000 + b"e"
    expected = Expected(fingerprints={b"x": fingerprint(data)})
    raw.set(b"jobs:item:x", data)
    assert [o.status for o in complete_items(queue, [b"x"], expected=expected, dry_run=True)] == [
        Status.COMPLETED
    ]
    changed = {"length": data + b"e", "beginning": b"c" + data[1:], "end": data[:-1] + b"f"}
    raw.set(b"jobs:item:x", changed[change])
    assert [o.status for o in complete_items(queue, [b"x"], expected=expected)] == [Status.CHANGED]


def test_a_duplicated_item_is_what_one_of_its_entries_was_chosen_for(
    queue: WorkQueue, foreign: Foreign
) -> None:
    """A listing of main alone sees one of its entries."""
    foreign.waiting(b"x")
    foreign.abandoned(b"x")
    chosen = {state: choose_items(queue, Selection(frozenset({state}))) for state in ITS_STATES}
    for found in chosen.values():
        assert list(found.ids) == [b"x"]
    leased = Expected(states=frozenset({State.LEASED}))
    assert [o.status for o in complete_items(queue, [b"x"], expected=leased)] == [Status.CHANGED]
    for found in chosen.values():
        outcomes = complete_items(queue, found.ids, expected=found.expected, dry_run=True)
        assert [o.status for o in outcomes] == [Status.COMPLETED]


ITS_STATES = (State.WAITING, State.DUPLICATED)
