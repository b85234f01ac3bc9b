"""A queue of which no key exists is said to be so by every command that looks or heals."""

import pytest

from tests.conftest import ABSENT, Foreign, contents
from tests.driver import Rwq

pytestmark = pytest.mark.usefixtures("slept_s")

NOTE = ABSENT.replace("jobs", "jbos")
LOOKING = (
    *("ls", "ls all", "ls delayed", "ls -o ids", "ls -o json", "ls --state orphaned", "leases"),
    *("show 17", "show 17 -o json", "result 17", "stats", "stats --fast", "stats --deep"),
    *("stats -o json", "wait --timeout 0", "check", "check --format prometheus", "clean light"),
    *("clean deep", "clean light -o jsonl", "doctor", "doctor --fix", "export"),
)


def test_a_missing_queue_is_reported_and_no_other(rwq: Rwq, foreign: Foreign) -> None:
    for state in ("waiting", "leased", "buried"):
        foreign.raw.flushall()
        getattr(foreign, state)(b"17")
        before = contents(foreign.raw)
        for line in LOOKING:
            words = line.split()
            assert NOTE in rwq(*words, "-q", "jbos").notes, line
            assert "no such queue" not in rwq(*words, "-Q", "-q", "jbos").notes, line
            assert contents(foreign.raw) == before, line
        assert [line for line in LOOKING if "no such queue" in rwq(*line.split()).notes] == []


def test_a_verb_that_takes_no_patterns_says_so(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    notes = rwq("rm", "-q", "jo*", "--all", "--yes").notes
    assert notes.splitlines()[0].endswith("; this command takes no patterns")
    assert "patterns" not in rwq("rm", "-q", "jo", "--all", "--yes").notes
