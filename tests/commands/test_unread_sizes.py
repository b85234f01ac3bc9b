"""One note says that sizes and data are not read where reading counts as use."""

from typing import Any

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


@pytest.mark.parametrize("line", ["ls", "ls all", "leases"])
@pytest.mark.parametrize("output", ["table", "json", "jsonl", "csv"])
def test_one_note_says_that_sizes_are_not_read(rwq: Rwq, line: str, output: str) -> None:
    assert rwq(*line.split(), "-o", output).notes.count(NOTE) == 1


def test_the_sizes_are_null(rwq: Rwq) -> None:
    result = rwq("ls", "-o", "json")
    assert [(item["bytes"], item["preview"]) for item in result.json] == [(None, None)] * 2


@pytest.mark.parametrize("output", ["table", "json"])
def test_an_item_that_is_named_is_shown_all_the_same(rwq: Rwq, output: str) -> None:
    result = rwq("show", "a", "b", "-o", output)
    note = "note: on this server, reading an item resets its idle time; "
    assert result.notes == f"{note}what is shown was read before\n"
    assert result.text.count("data of a") == 1


@pytest.mark.parametrize(
    "line",
    [
        "ls --data",
        "ls -o data",
        "ls -o ids",
        "ls -Q",
        "ls --fields id,state",
        "ls delayed",
        "leases -o ids",
        "show a --data",
        "show a --fields id,state",
        "show a -o data",
        "stats --fast",
        "stats -o ids",
    ],
)
def test_there_is_no_note_where_they_are_read_or_not_shown(rwq: Rwq, line: str) -> None:
    assert "resets its idle time" not in rwq(*line.split()).notes


def test_several_queues_have_one_note(rwq: Rwq, raw: redis.Redis) -> None:
    Foreign(raw, b"other").waiting(b"c")
    queues = ("-q", "jobs", "-q", "other")
    assert rwq("ls", *queues).notes.count(NOTE) == 1
    assert rwq("stats", *queues).notes == STATS_NOTE


def test_without_waiting_items_stats_has_no_note(rwq: Rwq, raw: redis.Redis) -> None:
    Foreign(raw, b"other").leased(b"c")
    assert rwq("stats", "-q", "other").notes == ""


def test_a_server_that_counts_no_reads_gets_no_note(
    rwq: Rwq, monkeypatch: pytest.MonkeyPatch
) -> None:
    def agree(*_: Any) -> bool:
        return True

    monkeypatch.setattr(Connection, "set_no_touch", agree)
    for line in ("ls", "leases", "show a", "stats"):
        assert "resets its idle time" not in rwq(*line.split()).notes
