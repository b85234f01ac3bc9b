"""`rwq diff`: what two queues do not have alike, by ID."""

import csv
from io import StringIO

import pytest

from tests.conftest import Foreign, StartServer, contents
from tests.driver import Rwq, configure


@pytest.fixture
def queues(foreign: Foreign) -> Foreign:
    """Two queues that are alike but for five items."""
    other = Foreign(foreign.raw, b"copy")
    for each in (foreign, other):
        each.waiting(b"same")
        each.buried(b"too")
    foreign.waiting(b"mine", b"w", b"s")
    other.waiting(b"theirs", b"w")
    other.leased(b"s")
    foreign.raw.set("copy:item:w", "changed")
    return foreign


def test_each_difference_is_a_record(rwq: Rwq, queues: Foreign) -> None:
    before = contents(queues.raw)
    result = rwq("diff", "jobs", "copy", "-o", "json")
    assert {
        each["id"]: [each[name] for name in ("kind", "here", "there", "same_data")]
        for each in result.json
    } == {
        "mine": ["only-here", "waiting", None, None],
        "theirs": ["only-there", None, "waiting", None],
        "w": ["differs", "waiting", "waiting", False],
        "s": ["differs", "waiting", "leased", True],
    }
    assert (result.code, contents(queues.raw)) == (1, before)
    notes = result.notes.removesuffix(" (jobs and copy)\n").split(", ")
    assert sorted(notes) == ["differs 2", "only here 1", "only there 1"]
    rows = csv.DictReader(StringIO(rwq("diff", "jobs", "copy", "-o", "csv").text))
    assert {row["id"] for row in rows} == {"mine", "theirs", "w", "s"}
    table = rwq("diff", "jobs", "copy", "-o", "table").lines
    assert table[0].split() == ["ID", "DIFFERENCE", "HERE", "THERE", "DATA"]


def test_a_queue_of_another_server(rwq: Rwq, foreign: Foreign, start_server: StartServer) -> None:
    foreign.waiting(b"a", b"b")
    server = start_server()
    with server.client() as raw:
        Foreign(raw).waiting(b"a")
    assert rwq("diff", "jobs", "--to-url", server.url, "-o", "ids").text == "b\n"
    result = rwq("diff", "jobs", "nix", "--to-url", server.url)
    assert f"rwq: nix: no such queue on {server.url}, or " in result.notes
    configure(rwq.home, f'[contexts.new]\nurl = "{server.url}"\nread_only = true\n')
    url = rwq.variables["RWQ_URL"]
    lines = ("diff jobs", "diff", "diff -q jobs", "diff -q jobs jobs")
    results = {line: rwq(*line.split(), "--to-context", "new").as_tuple() for line in lines}
    summary = f"only here 1 (jobs on {url} and jobs on new)\n"
    codes = {line: (code, notes) for line, (code, _, notes) in results.items()}
    assert codes == dict.fromkeys(lines, (1, summary))


def test_two_queues_that_do_not_exist_are_no_success(rwq: Rwq, foreign: Foreign) -> None:
    """Two mistyped names would pass a restore drill."""
    result = rwq("diff", "nope", "nix")
    assert (result.code, result.text) == (1, "")
    assert "nope: no such queue" in result.notes
    foreign.waiting(b"a")
    assert rwq("complete", "a").code == 0
    foreign.raw.hset("jobs:returns", "a", 1)
    assert rwq("diff", "jobs", "nix").code == 0


def test_a_queue_is_compared_with_its_export(rwq: Rwq, queues: Foreign) -> None:
    export, everything = rwq("export").out, rwq("export", "--all-queues").out
    queues.raw.delete("jobs:item:mine")
    queues.raw.lrem("jobs:queue", 0, "mine")
    queues.raw.set("jobs:item:w", "changed")
    queues.waiting(b"new")
    paths = [rwq.home / "jobs.jsonl", rwq.home / "all.jsonl"]
    paths[0].write_bytes(export)
    paths[1].write_bytes(everything)
    results = [rwq("diff", "--file", str(path), "-o", "json") for path in paths]
    assert [(result.code, result.notes.count("\n")) for result in results] == [(1, 1)] * 2
    kinds = {"new": ("only-here", None), "mine": ("only-there", None), "w": ("differs", False)}
    assert [
        {record["id"]: (record["kind"], record["same_data"]) for record in result.json}
        for result in results
    ] == [kinds] * 2
    assert rwq("import", "-q", "restored", "-", stdin=export).code == 0
    assert rwq("diff", "restored", "--file", "-", stdin=export).code == 0
    # A delayed item may be due by now.
    delayed = b'{"id": "d", "data": "x", "state": "delayed", "place": "delayed", "due_ms": 1}\n'
    due = b'{"rwq_export": 1, "queue": "jobs"}\n' + delayed
    queues.raw.flushall()
    queues.delayed(b"d", 1)
    queues.raw.set("jobs:item:d", "x")
    assert rwq("diff", "--file", "-", stdin=due).code == 0
    lines = ("diff jobs copy --file x", "diff --file gone")
    assert [rwq(*line.split()).code for line in lines] == [2, 2]
    assert rwq("diff", "--file", "-", stdin=due + b"nonsense\n").code == 3
