"""`rwq touch`: a live lease gets a new expiry, whoever holds it; nothing else does."""

import pytest
import redis

from tests.conftest import Foreign
from tests.driver import Rwq


def left_s(raw: redis.Redis, item_id: str) -> tuple[int, int]:
    """Seconds left in the keys of both generations."""
    return (
        round(raw.pttl(f"jobs:lease:{item_id}") / 1000),
        round(raw.pttl(f"jobs:leased_by_session:{item_id}") / 1000),
    )


@pytest.mark.parametrize("generation", ["old", "new", "both"])
def test_a_live_lease_is_extended(rwq: Rwq, foreign: Foreign, generation: str) -> None:
    foreign.abandoned(b"a")
    foreign.lease(b"a", holder=b"worker-7", generations=generation)
    result = rwq("touch", "a", "--for", "10m")
    assert result.as_tuple() == (0, "", "touched 1\n")
    assert left_s(foreign.raw, "a") == (600, 600)
    assert foreign.raw.get("jobs:lease:a") == b"worker-7"


def test_a_lease_lasts_five_minutes_by_default(rwq: Rwq, foreign: Foreign) -> None:
    foreign.leased(b"a")
    rwq("touch", "a")
    assert left_s(foreign.raw, "a") == (300, 300)


def test_touching_some_of_several_is_partial(rwq: Rwq, foreign: Foreign) -> None:
    foreign.leased(b"l", holder=b"worker-7")
    foreign.waiting(b"w")
    result = rwq("touch", "l", "w", "gone", "-o", "jsonl")
    assert [(record["id"], record["status"], record["holder"]) for record in result.jsonl] == [
        ("l", "touched", None),
        ("w", "not-leased", None),
        ("gone", "missing", None),
    ]
    assert (result.code, result.notes) == (3, "touched 1, not leased 1, missing 1\n")
