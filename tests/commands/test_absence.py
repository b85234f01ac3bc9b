"""A queue of which no key exists is said to be so by every command that looks or heals."""

import pytest

from tests.conftest import ABSENT, Foreign, contents
from tests.driver import Rwq

pytestmark = pytest.mark.usefixtures("slept_s")

NOTE = ABSENT.replace("jobs", "jbos")
LOOKING = (
    "ls",
    "ls all",
    "ls delayed",
    "ls -o ids",
    "ls -o json",
    "ls --state orphaned",
    "leases",
    "show 17",
    "show 17 -o json",
    "result 17",
    "stats",
    "stats --fast",
    "stats --deep",
    "stats -o json",
    "wait",
    "wait --below 5",
    "check",
    "check --format prometheus",
    "clean light",
    "clean deep",
    "clean light -o jsonl",
    "doctor",
    "doctor --fix",
    "export",
)


@pytest.mark.parametrize("line", LOOKING)
def test_a_missing_queue_is_reported(rwq: Rwq, foreign: Foreign, line: str) -> None:
    foreign.waiting(b"17")
    before = contents(foreign.raw)
    assert NOTE in rwq(*line.split(), "-q", "jbos").notes
    assert contents(foreign.raw) == before
    assert "no such queue" not in rwq(*line.split(), "-Q", "-q", "jbos").notes


@pytest.mark.parametrize(
    ("line", "state"),
    [*((line, "waiting") for line in LOOKING), ("ls", "leased"), ("ls", "buried")],
)
def test_a_queue_that_exists_is_not(rwq: Rwq, foreign: Foreign, line: str, state: str) -> None:
    getattr(foreign, state)(b"a")
    more = ("--timeout", "0") if line.startswith("wait") else ()
    assert "no such queue" not in rwq(*line.split(), *more).notes


def test_each_of_several_queues_is_looked_at(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    result = rwq("stats", "-q", "jobs", "-q", "jbos", "-o", "ids")
    assert result.as_tuple() == (0, "jobs\njbos\n", NOTE)


def test_a_verb_that_takes_no_patterns_says_so(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    notes = rwq("rm", "-q", "jo*", "--all", "--yes").notes
    assert notes.splitlines()[0].endswith("; this command takes no patterns")
    assert "patterns" not in rwq("rm", "-q", "jo", "--all", "--yes").notes
