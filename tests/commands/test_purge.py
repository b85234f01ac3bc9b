"""`rwq purge`: a whole queue, after its name was typed."""

from tests.conftest import Foreign, contents
from tests.driver import UNDO, Rwq, undo_files


def test_it_needs_the_name_of_the_queue(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(*(b"%d" % number for number in range(1000)))
    foreign.data(b"orphan")
    asks = b"rwq will remove all 1,001 items of jobs on"
    before = contents(foreign.raw)
    code, seen = rwq.asked("purge", type_in=[(b"to continue: ", b"y\n")])
    assert (code, asks in seen) == (1, True)
    assert contents(foreign.raw) == before
    code, _ = rwq.asked("purge", type_in=[(b"to continue: ", b"jobs\n")])
    assert (code, foreign.raw.keys()) == (0, [])


def test_other_keys_under_the_prefix_of_results_stay(rwq: Rwq, foreign: Foreign) -> None:
    fields = {"status": "completed", "completed_ms": 1_700_000_000_000, "result": b"\x00\xfe"}
    for item_id in (b"gone", b"\xff"):
        foreign.raw.hset(b"jobs:result:" + item_id, mapping=fields)  # type: ignore[arg-type]
    foreign.raw.hset("jobs:result:odd", "x", "y")
    foreign.raw.set("jobs:result:s", "t")
    said = "rwq: kept 2 of other programs, with names like those of results\n"
    dry = rwq("purge", "--dry-run")
    assert dry.notes == f"{said}dry run: results 2\n"
    result = rwq("purge", "--yes")
    (file,) = undo_files(rwq)
    summary = f"results 2; undo file {UNDO}/{file.name}; rwq undo puts them back\n"
    assert result.as_tuple() == (0, "", said + summary)
    assert sorted(foreign.raw.keys()) == [b"jobs:result:odd", b"jobs:result:s"]
    foreign.raw.delete("jobs:result:s")
    assert rwq("purge", "-o", "json").notes == said.replace("2", "1")
