"""A guard that is left under one lease name, from an earlier item of the ID, is not believed."""

import pytest

from tests.conftest import Foreign
from tests.driver import Rwq

NOW = ("--grace", "0")
LEASES = {"new": b"jobs:lease:x", "old": b"jobs:leased_by_session:x"}

both_generations = pytest.mark.parametrize("generation", ["new", "old"])
both_verbs = pytest.mark.parametrize(
    ("verb", "zset"),
    [
        (("bury", "--force"), "jobs:buried"),
        (("release", "--force", "--delay", "1h"), "jobs:delayed"),
    ],
)


@both_generations
@both_verbs
def test_an_id_is_scheduled_completed_reused_leased_and_abandoned(
    rwq: Rwq, foreign: Foreign, generation: str, verb: tuple[str, ...], zset: str
) -> None:
    raw, own = foreign.raw, LEASES[generation]
    (other,) = {*LEASES.values()} - {own}
    foreign.leased(b"x", holder=b"worker", generations=generation)
    assert rwq(*verb, "--yes", "x").code == 0
    # Its worker does not know of that, and completes it as upstream's workers do.
    assert raw.delete("jobs:item:x") == 1
    raw.lrem("jobs:processing", 0, b"x")
    raw.delete(own)
    assert raw.exists(other, zset) == 2
    assert "ghost" in rwq("doctor", *NOW).text
    # Upstream's producer knows nothing of the guard and of the entry.
    foreign.waiting(b"x")
    assert "state: waiting" in squeezed(rwq("show", "x").text)
    raw.rpoplpush("jobs:queue", "jobs:processing")
    foreign.lease(b"x", holder=b"worker", generations=generation)
    assert "state: leased" in squeezed(rwq("show", "x").text)
    assert rwq("check", "--critical", "abandoned=0").code == 0
    # The worker dies.
    raw.delete(own)
    assert raw.exists(other, zset) == 2
    assert "state: abandoned" in squeezed(rwq("show", "x").text)
    assert rwq("check", "--critical", "abandoned=0").code == 2
    found = {record["code"] for record in rwq("doctor", *NOW, "-o", "json").json}
    assert {"abandoned", "stale-schedule"} <= found
    assert rwq("clean", "light", *NOW).notes == "returned 1\n"
    assert raw.lrange("jobs:queue", 0, -1) == [b"x"]
    assert raw.exists(zset) == 0
    assert "state: waiting" in squeezed(rwq("show", "x").text)
    healthy = rwq("doctor", *NOW)
    assert healthy.code == 0, healthy.text


@both_generations
def test_the_doctor_guards_a_buried_item_under_both_names(
    rwq: Rwq, foreign: Foreign, generation: str
) -> None:
    foreign.waiting(b"x")
    assert rwq("bury", "--reason", "broken", "x").code == 0
    foreign.raw.delete(LEASES[generation])
    assert "unguarded" in rwq("doctor", *NOW).text, "half a guard is a finding"
    assert rwq("doctor", "--fix", *NOW).code == 0
    assert [foreign.raw.get(key) for key in LEASES.values()] == [b"rwq-buried:broken"] * 2


def squeezed(text: str) -> str:
    """The text with single spaces, and a colon behind the first word of each line."""
    lines = (line.split(None, 1) for line in text.splitlines() if line.strip())
    return "\n".join(": ".join(words).replace("::", ":") for words in lines)
