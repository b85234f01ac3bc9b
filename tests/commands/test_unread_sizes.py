"""One note says that sizes and data are not read where reading counts as use."""

import pytest
import redis

from rwq_cli.core.server.connection import Connection
from tests.conftest import Foreign, supports_no_touch
from tests.driver import Rwq

NOTE = (
    "note: on this server, reading an item resets its idle time; sizes and data are not read; "
    "--data reads them, "
    "which resets idle times\n"
)
STATS_NOTE = (
    "note: on this server, reading an item resets its idle time; payload sizes are not sampled\n"
)


@pytest.fixture(autouse=True)
def old_server(raw: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that refuses NO-TOUCH."""
    if supports_no_touch(raw):
        monkeypatch.setattr(Connection, "set_no_touch", lambda *_: False)


@pytest.fixture(autouse=True)
def filled(foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    foreign.leased(b"l")


def test_one_note_says_that_sizes_are_not_read(rwq: Rwq) -> None:
    for line in ("ls", "ls all", "leases"):
        for output in ("table", "json", "csv"):
            assert rwq(*line.split(), "-o", output).notes.count(NOTE) == 1
    items = rwq("ls", "-o", "json").json
    assert [(item["bytes"], item["preview"]) for item in items] == [(None, None)] * 2


@pytest.mark.parametrize("output", ["table", "json"])
def test_an_item_that_is_named_is_shown_all_the_same(rwq: Rwq, output: str) -> None:
    result = rwq("show", "a", "b", "-o", output)
    note = "note: on this server, reading an item resets its idle time; "
    assert result.notes == f"{note}what is shown was read before\n"
    assert result.text.count("data of a") == 1


def test_there_is_no_note_where_they_are_read_or_not_shown(rwq: Rwq) -> None:
    for line in (
        *("ls --data", "ls -o data", "ls -o ids", "ls -Q", "ls --fields id,state", "ls delayed"),
        *("leases -o ids", "show a --data", "show a --fields id,state", "show a -o data"),
        *("stats --fast", "stats -o ids", "stats -q none"),
    ):
        assert "resets its idle time" not in rwq(*line.split()).notes, line


def test_several_queues_have_one_note(rwq: Rwq, raw: redis.Redis) -> None:
    Foreign(raw, b"other").waiting(b"c")
    queues = ("-q", "jobs", "-q", "other")
    assert rwq("ls", *queues).notes.count(NOTE) == 1
    assert rwq("stats", *queues).notes == STATS_NOTE
