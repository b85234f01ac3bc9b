"""`rwq touch`: a live lease gets a new expiry, whoever holds it; nothing else does."""

import pytest
import redis

from tests.conftest import Foreign, contents
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


def test_a_lease_can_be_shortened(rwq: Rwq, foreign: Foreign) -> None:
    foreign.leased(b"a")
    rwq("touch", "a", "--for", "5s")
    assert left_s(foreign.raw, "a") == (5, 5)


def test_a_lease_lasts_five_minutes_by_default(rwq: Rwq, foreign: Foreign) -> None:
    foreign.leased(b"a")
    rwq("touch", "a")
    assert left_s(foreign.raw, "a") == (300, 300)


def test_an_expired_lease_is_not_revived(rwq: Rwq, foreign: Foreign) -> None:
    foreign.abandoned(b"a")
    assert rwq("touch", "a").as_tuple() == (
        1,
        "",
        "rwq: a: it has no live lease; rwq show -q jobs a says where it is\nnot leased 1\n",
    )
    assert foreign.raw.exists("jobs:lease:a") == 0


@pytest.mark.parametrize("state", ["waiting", "data", "buried"])
def test_items_without_a_lease_are_reported(rwq: Rwq, foreign: Foreign, state: str) -> None:
    getattr(foreign, state)(b"a")
    before = contents(foreign.raw)
    assert rwq("touch", "a").code == 1
    assert contents(foreign.raw) == before


def test_the_guard_of_a_delayed_item_is_not_touched(rwq: Rwq, foreign: Foreign) -> None:
    foreign.delayed(b"a", 1)
    assert rwq("touch", "a", "--for", "1s").code == 1
    assert left_s(foreign.raw, "a") == (3600, 3600)


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


def test_ids_are_read_from_stdin(rwq: Rwq, foreign: Foreign) -> None:
    foreign.leased(b"a", b"b c")
    assert rwq("touch", "-", "--for", "1h", stdin=b"a\nb c\n").code == 0
    assert left_s(foreign.raw, "b c") == (3600, 3600)
