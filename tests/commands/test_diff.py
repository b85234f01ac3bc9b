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
    configure(rwq.home, f'[contexts.new]\nurl = "{server.url}"\nread_only = true\n')
    url = rwq.variables["RWQ_URL"]
    for words in (
        ("diff", "jobs"),
        ("diff",),
        ("diff", "-q", "jobs"),
        ("diff", "-q", "jobs", "jobs"),
    ):
        result = rwq(*words, "--to-context", "new")
        said = f"only here 1 (jobs on {url} and jobs on new)\n"
        assert (result.code, result.notes) == (1, said), words
