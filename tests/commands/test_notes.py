"""Notes of all commands that look or heal: no such queue, and sizes that are not read."""

import pytest
import redis

from rwq_cli.core.server.connection import Connection
from tests.conftest import Foreign, absent, contents, supports_no_touch
from tests.driver import Rwq
from tests.verbs import STATES

pytestmark = pytest.mark.usefixtures("slept_s")

LOOKING = (
    *("ls", "ls all", "ls delayed", "ls -o ids", "ls -o json", "ls --state orphaned", "leases"),
    *("show 17", "show 17 -o json", "result 17", "stats", "stats --fast", "stats --deep"),
    *("stats -o json", "wait --timeout 0", "check", "check --format prometheus", "clean light"),
    *("clean deep", "clean light -o jsonl", "doctor", "doctor --fix", "export"),
)


@pytest.mark.parametrize("line", LOOKING)
def test_a_missing_queue_is_reported_and_no_other(rwq: Rwq, foreign: Foreign, line: str) -> None:
    foreign.waiting(b"17")
    before, words = contents(foreign.raw), line.split()
    assert absent(rwq.variables["RWQ_URL"], "jbos") in rwq(*words, "-q", "jbos").notes
    assert "no such queue" not in rwq(*words, "-Q", "-q", "jbos").notes
    assert contents(foreign.raw) == before
    assert "no such queue" not in rwq(*words).notes


@pytest.mark.parametrize(("name", "is_offered"), [("jbos", True), ("mail", False)])
def test_a_similar_name_is_offered_on_a_terminal(
    rwq: Rwq, foreign: Foreign, name: str, *, is_offered: bool
) -> None:
    foreign.waiting(b"17")
    assert "mean" not in rwq("ls", "-q", name).notes
    code, written = rwq.on_terminal("ls", "-q", name)
    assert (code, b"rwq: did you mean jobs?" in written) == (0, is_offered)


@pytest.mark.parametrize("state", ["leased", "buried", "delayed"])
def test_a_queue_where_nothing_waits_is_not_missing(rwq: Rwq, foreign: Foreign, state: str) -> None:
    STATES[state](foreign, b"17")
    assert "no such queue" not in rwq("ls").notes


def test_a_verb_that_takes_no_patterns_says_so(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    notes = rwq("rm", "-q", "jo*", "--all", "--yes").notes
    assert notes.splitlines()[0].endswith("; this command takes no patterns")
    assert "patterns" not in rwq("rm", "-q", "jo", "--all", "--yes").notes


NOTE = (
    "note: on this server, reading an item resets its idle time; sizes and data are not read; "
    "--data reads them, "
    "which resets idle times\n"
)


@pytest.fixture
def old_server(raw: redis.Redis, foreign: Foreign, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that refuses NO-TOUCH, with items."""
    foreign.waiting(b"a", b"b")
    foreign.leased(b"l")
    if supports_no_touch(raw):
        monkeypatch.setattr(Connection, "set_no_touch", lambda *_: False)


@pytest.mark.usefixtures("old_server")
@pytest.mark.parametrize("output", ["table", "json", "csv"])
def test_one_note_says_that_sizes_are_not_read(rwq: Rwq, output: str) -> None:
    notes = [rwq(*line.split(), "-o", output).notes for line in ("ls", "ls all", "leases")]
    assert [text.count(NOTE) for text in notes] == [1, 1, 1], notes
    items = rwq("ls", "-o", "json").json
    assert [(item["bytes"], item["preview"]) for item in items] == [(None, None)] * 2


@pytest.mark.parametrize(
    "line",
    [
        *("ls --data", "ls -o data", "ls -o ids", "ls -Q", "ls --fields id,state", "ls delayed"),
        *("leases -o ids", "show a --data", "show a --fields id,state", "show a -o data"),
        *("stats --fast", "stats -o ids", "stats -q none"),
    ],
)
@pytest.mark.usefixtures("old_server")
def test_no_note_where_its_condition_is_absent(rwq: Rwq, line: str) -> None:
    assert "resets its idle time" not in rwq(*line.split()).notes
