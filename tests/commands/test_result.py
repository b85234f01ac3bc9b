"""`rwq result`: the outcome that complete kept, its bytes as they are, or what there is instead."""

import base64
import re
import time

from tests.conftest import Foreign
from tests.driver import Rwq


def keep(foreign: Foreign, item_id: str, **fields: str | bytes | int) -> None:
    """A result as complete keeps it."""
    given = {"status": "completed", "completed_ms": 1_700_000_000_000, **fields}
    foreign.raw.hset(f"jobs:result:{item_id}", mapping=given)  # type: ignore[arg-type]


def test_a_result_is_printed_unchanged(rwq: Rwq, foreign: Foreign) -> None:
    foreign.leased(b"a", holder=b"worker-7")
    file = rwq.home / "answer"
    file.write_bytes(b"\x00\xff\n")
    started_ms = int(time.time() * 1000)
    done = rwq("complete", "a", "--owner", "worker-7", "--result", str(file), "--result-ttl", "10m")
    assert done.as_tuple() == (0, "", "completed 1\n")
    shown = rwq("result", "a", "-o", "json")
    assert (shown.code, shown.notes) == (0, "")
    record = shown.json
    assert 0 <= record.pop("completed_ms") - started_ms < 60_000
    assert 500_000 < record.pop("ttl_ms") <= 600_000
    assert record == {
        "queue": "jobs",
        "queue_b64": None,
        "id": "a",
        "id_b64": None,
        "state": "gone",
        "status": "completed",
        "result": None,
        "result_b64": base64.b64encode(b"\x00\xff\n").decode(),
        "bytes": 3,
        "holder": "worker-7",
    }
    assert rwq("result", "a", "-o", "data").out == b"\x00\xff\n"
    assert rwq("result", "a", "-o", "ids").out == b"a\n"


def test_the_table_of_a_result(rwq: Rwq, foreign: Foreign) -> None:
    keep(foreign, "a", result=b"one\n[red]\x1b[2J", holder=b"\xffthem")
    result = rwq("result", "a", "-o", "table", variables={"TZ": "UTC"})
    when = result.lines[3]
    local = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(1_700_000_000))
    assert re.fullmatch(rf"   when  \d+d\d*h? ago, {local} (UTC|[-+]\d\d:\d\d)", when)
    assert result.lines == [
        "a",
        "  queue  jobs",
        " status  completed",
        when,
        "held by  \\xffthem",
        "   size  13 B",
        "expires  never",
        "",
        "Result",
        "  one",
        "  [red]\\x1b[2J",
    ]


def test_an_older_result_is_printed_with_a_note(rwq: Rwq, foreign: Foreign) -> None:
    keep(foreign, "a", result=b"old")
    foreign.waiting(b"a")
    assert rwq("result", "a", "-o", "data").as_tuple() == (
        0,
        "old",
        "note: a was added again, and is waiting now; this is the result of the earlier item\n",
    )


def test_a_timeout_ends_the_wait(rwq: Rwq, foreign: Foreign) -> None:
    """Also where an earlier item left one."""
    keep(foreign, "a", result=b"old")
    foreign.leased(b"a")
    result = rwq("result", "a", "--timeout", "50ms", "-o", "data")
    assert result.as_tuple() == (1, "", "no result for a: it is still leased\n")
