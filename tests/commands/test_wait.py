"""`rwq wait`: its codes, what it tells, and that a script can rely on it."""

from tests.conftest import Foreign, absent, contents
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


def test_conditions_decide_the_code(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"w1", b"w2")
    foreign.leased(b"l1", ttl_ms=None)
    before = contents(foreign.raw)
    for words, code in {
        "": 1,
        "--until-empty": 1,
        "--below 2": 1,
        "--below 3": 0,
        "--id w1": 1,
        "--id gone": 0,
        "--id gone --id w1": 1,
        "--id l1": 1,
    }.items():
        result = rwq("wait", *words.split(), "--timeout", "0", "-o", "json")
        assert (result.code, result.json["reached"], result.notes) == (code, code == 0, ""), words
        assert (result.json["waiting"], result.json["processing"]) == (2, 1)
    assert contents(foreign.raw) == before


def test_clean_returns_abandoned_items_meanwhile(rwq: Rwq, foreign: Foreign) -> None:
    foreign.abandoned(b"a1")
    words = ("wait", "--until-empty", "--timeout", "0.1s")
    assert (rwq(*words).code, foreign.raw.llen("jobs:queue")) == (1, 0)
    assert (rwq(*words, "--clean").code, foreign.raw.llen("jobs:queue")) == (1, 1)
