"""`rwq rm`: items and every trace of them go, after a question, and into an undo file."""

import json
import stat

from tests.conftest import Foreign, contents
from tests.driver import UNDO, Rwq, undo_files


def test_the_undo_command_reaches_the_same_queue_and_server(rwq: Rwq, foreign: Foreign) -> None:
    url = rwq.variables["RWQ_URL"]
    foreign.waiting(b"a")
    removed = rwq("rm", "a", "--yes", "-u", url, "-q", "jobs")
    command = removed.notes.rpartition("; ")[2].removesuffix(" puts it back\n")
    assert command == f"rwq undo -u {url} -q jobs"
    assert rwq(*command.split()[1:], "--yes", variables={"RWQ_URL": "", "RWQ_QUEUE": ""}).code == 0
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"a"]


def test_the_summary_has_the_undo_file(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    result = rwq("rm", "a", "gone", "--yes")
    (file,) = undo_files(rwq)
    summary = f"removed 1, missing 1; undo file {UNDO}/{file.name}; rwq undo puts it back\n"
    assert result.as_tuple() == (3, "", f"rwq: gone: no such item\n{summary}")
    assert contents(foreign.raw) == {b"jobs:item:b": b"data of b", b"jobs:queue": [b"b"]}
    header, record, end = map(json.loads, file.read_text().splitlines())
    assert (header["queue"], header["undo"]["verb"], end) == ("jobs", "rm", {"taken": 1})
    assert (record["id"], record["data"], record["place"]) == ("a", "data of a", "main")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
