"""What was chosen is compared in the script that acts; each verb and state: `test_contract.py`."""

import pytest
from redis import Redis

from rwq_cli.core import Selection, State, Status, WorkQueue
from rwq_cli.core.inspect.choosing import choose
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
