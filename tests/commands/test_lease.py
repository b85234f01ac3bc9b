"""`rwq lease`: takes the next items, under a lease of ours, and waits without popping."""

import os
import re

import pytest
import redis

from tests.conftest import Foreign
from tests.driver import TIMEOUT_S, Rwq, until


def test_commands_of_one_shell_share_a_session(rwq: Rwq, foreign: Foreign) -> None:
    """Two commands of one shell have one holder, so that the second may release."""
    foreign.waiting(b"a")
    assert rwq.shell("rwq lease -o ids && rwq release a", {"RWQ_SESSION": ""}).code == 0
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"a"]
    foreign.raw.flushall()
    foreign.waiting(b"b")
    rwq("lease", variables={"RWQ_SESSION": "mine", "USER": "ann"})
    holder = foreign.raw.get("jobs:lease:b")
    assert holder == f"rwq:ann@{os.uname().nodename}:mine".encode()


@pytest.mark.parametrize("by_id", [True, False])
def test_with_data_output_the_lease_is_on_stderr(rwq: Rwq, foreign: Foreign, by_id: bool) -> None:
    foreign.waiting(b"a\x1b", b"b")
    words = ("--id", "a\x1b", "--id", "b") if by_id else ("-n", "2")
    result = rwq("lease", *words, "--for", "1h", "-o", "data")
    assert [line.partition(", until ")[0] for line in result.notes.splitlines()] == [
        "leased a\\x1b of jobs for 1h",
        "leased b of jobs for 1h",
    ]
    foreign.waiting(b"c")
    said = "dry run: these would be leased now\n"
    assert rwq("lease", "--dry-run", "-o", "data").as_tuple() == (0, "data of c", said)


def test_wait_lasts_until_an_item_is_added(rwq: Rwq, raw: redis.Redis) -> None:
    process = rwq.start("lease", "--wait", "-o", "data")
    until(lambda: raw.info("clients")["blocked_clients"] == 1)
    assert rwq("add", "x", "--id", "a").code == 0
    out, err = process.communicate(timeout=TIMEOUT_S)
    waiting, held = err.decode().splitlines()
    assert (out, waiting) == (b"x", "waiting for an item in jobs")
    assert re.fullmatch(
        r"leased a of jobs for 5m, until [-0-9]{10} [:0-9]{8} (UTC|[-+][:0-9]{5})", held
    )
    assert process.returncode == 0
    assert raw.lrange("jobs:processing", 0, -1) == [b"a"]


QUEUES = ("-q", "high", "-q", "normal", "-q", "low")


class TestSeveralQueues:
    @pytest.fixture(autouse=True)
    def filled(self, raw: redis.Redis) -> None:
        Foreign(raw, b"normal").waiting(b"n1", b"n2")
        Foreign(raw, b"low").waiting(b"l1")

    def test_the_first_queue_with_an_item_wins(self, rwq: Rwq, raw: redis.Redis) -> None:
        assert rwq("lease", *QUEUES, "-n", "5").code == 0
        assert raw.lrange("low:queue", 0, -1) == [b"l1"]
        result = rwq("lease", *QUEUES, "-o", "data")
        assert (result.code, result.text) == (0, "data of l1")
        assert result.notes.startswith("leased l1 of low for 5m, until ")
        assert rwq("lease", *QUEUES).as_tuple() == (
            1,
            "",
            "Nothing to lease in high, normal, low.\n",
        )

    def test_ids_without_their_queue_are_refused(self, rwq: Rwq, raw: redis.Redis) -> None:
        assert rwq("lease", *QUEUES, "-o", "ids").as_tuple() == (
            2,
            "",
            "rwq: error: -o ids does not show which of several queues an item comes from; "
            "use -o jsonl, csv or plain\n",
        )
        assert raw.exists("normal:processing") == 0
        assert rwq("lease", "-q", "low", "-q", "low", "-o", "ids").text == "l1\n"
