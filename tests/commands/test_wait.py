"""`rwq wait`: its codes, what it tells, and that a script can rely on it."""

from tests.conftest import Foreign, absent
from tests.driver import Rwq


def test_an_empty_queue_ends_the_wait(rwq: Rwq) -> None:
    result = rwq("wait", "-o", "json")
    record = result.json
    assert (result.code, result.notes) == (0, absent(rwq.variables["RWQ_URL"]))
    assert record.pop("waited_seconds") >= 0.05
    assert record == {
        "queue": "jobs",
        "queue_b64": None,
        "reached": True,
        "waiting": 0,
        "processing": 0,
        "delayed": 0,
        "buried": 0,
        "remaining": None,
    }


def test_clean_returns_abandoned_items_meanwhile(rwq: Rwq, foreign: Foreign) -> None:
    foreign.abandoned(b"a1")
    words = ("wait", "--until-empty", "--timeout", "1s")
    assert (rwq(*words).code, foreign.raw.llen("jobs:queue")) == (1, 0)
    assert (rwq(*words, "--clean").code, foreign.raw.llen("jobs:queue")) == (1, 1)
