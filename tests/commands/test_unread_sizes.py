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


def test_there_is_no_note_where_they_are_read_or_not_shown(rwq: Rwq) -> None:
    for line in (
        *("ls --data", "ls -o data", "ls -o ids", "ls -Q", "ls --fields id,state", "ls delayed"),
        *("leases -o ids", "show a --data", "show a --fields id,state", "show a -o data"),
        *("stats --fast", "stats -o ids", "stats -q none"),
    ):
        assert "resets its idle time" not in rwq(*line.split()).notes, line
