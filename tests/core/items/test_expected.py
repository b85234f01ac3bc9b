"""What was chosen is compared in the script that acts; each verb and state: `test_contract.py`."""

import pytest
from redis import Redis

from rwq_cli.core import Selection, State, Status, WorkQueue
from rwq_cli.core.inspect.listing import choose
from rwq_cli.core.inspect.selection import Comparison
from rwq_cli.core.items.complete import complete
from rwq_cli.core.state.expected import Expected, fingerprint
from tests.conftest import Foreign


@pytest.mark.parametrize("change", ["length", "beginning", "end"])
def test_large_data_is_compared_by_length_and_both_ends(
    queue: WorkQueue, raw: Redis, foreign: Foreign, change: str
) -> None:
    foreign.waiting(b"x")
    data = b"b" + b"x" * 3_000_000 + b"e"
    expected = Expected(fingerprints={b"x": fingerprint(data)})
    raw.set(b"jobs:item:x", data)
    (outcome,) = complete(queue, [b"x"], expected=expected, dry_run=True)
    assert outcome.status is Status.COMPLETED
    changed = {"length": data + b"e", "beginning": b"c" + data[1:], "end": data[:-1] + b"f"}
    raw.set(b"jobs:item:x", changed[change])
    assert [o.status for o in complete(queue, [b"x"], expected=expected)] == [Status.CHANGED]


@pytest.mark.parametrize("by", ["holder", "reason", "returns"])
def test_what_was_chosen_by_its_holder_reason_or_returns_is_left_if_that_differs(
    queue: WorkQueue, raw: Redis, foreign: Foreign, by: str
) -> None:
    selection = {
        "holder": Selection(holder_glob=b"them"),
        "reason": Selection(reason_glob=b"this"),
        "returns": Selection(returns=Comparison("=", 2)),
    }[by]
    foreign.leased(b"x")
    raw.hset(b"jobs:returns", b"x", 2)
    if by == "reason":
        queue.bury(b"x", reason=b"this", force=True)
    ids, expected = choose(queue, selection)
    assert ids == [b"x"]
    (outcome,) = complete(queue, ids, expected=expected, dry_run=True)
    assert outcome.status is Status.COMPLETED
    if by == "reason":
        queue.bury(b"x", reason=b"that")
    else:
        foreign.lease(b"x", holder=b"another")
        raw.hset(b"jobs:returns", b"x", 3)
    assert [o.status for o in complete(queue, ids, expected=expected)] == [Status.CHANGED]
    assert raw.get(b"jobs:item:x") == b"data of x"


def test_a_duplicated_item_is_what_one_of_its_entries_was_chosen_for(
    queue: WorkQueue, foreign: Foreign
) -> None:
    """A listing of main alone sees one of its entries."""
    foreign.waiting(b"x")
    foreign.abandoned(b"x")
    chosen = [
        choose(queue, Selection(frozenset({state}))) for state in (State.WAITING, State.DUPLICATED)
    ]
    leased = Expected(states=frozenset({State.LEASED}))
    assert [o.status for o in complete(queue, [b"x"], expected=leased)] == [Status.CHANGED]
    for found in chosen:
        assert list(found.ids) == [b"x"]
        outcomes = complete(queue, found.ids, expected=found.expected, dry_run=True)
        assert [o.status for o in outcomes] == [Status.COMPLETED]
