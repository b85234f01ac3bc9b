"""`rwq touch`: a live lease gets a new expiry, whoever holds it; nothing else does."""

from tests.conftest import Foreign, lasts
from tests.driver import Rwq


def test_a_live_lease_gets_a_new_end(rwq: Rwq, foreign: Foreign) -> None:
    foreign.leased(b"l", holder=b"worker-7")
    foreign.waiting(b"w")
    result = rwq("touch", "l", "w", "gone", "--for", "10m", "-o", "jsonl")
    assert [(record["id"], record["status"], record["holder"]) for record in result.jsonl] == [
        ("l", "touched", None),
        ("w", "not-leased", None),
        ("gone", "missing", None),
    ]
    assert (result.code, result.notes) == (3, "touched 1, not leased 1, missing 1\n")
    both = ("jobs:lease:l", "jobs:leased_by_session:l")
    assert lasts(foreign.raw, 600, *both)
    assert foreign.raw.get("jobs:lease:l") == b"worker-7"
    rwq("touch", "l")
    assert lasts(foreign.raw, 300, *both)
