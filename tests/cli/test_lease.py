"""`rwq lease`: takes the next items, under a lease of ours, and waits without popping."""

import os
import time

import pytest
import redis

from tests.cli.driver import Rwq, until
from tests.conftest import Foreign

HOLDER = f"rwq:tester@{os.uname().nodename}:s1".encode()


def test_the_raw_keys(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    raw = foreign.raw
    assert rwq("lease", "--for", "10m", "-o", "ids").as_tuple() == (0, "a\n", "")
    assert raw.lrange("jobs:queue", 0, -1) == [b"b"]
    assert raw.lrange("jobs:processing", 0, -1) == [b"a"]
    assert raw.get("jobs:item:a") == b"data of a"
    for key in ("jobs:lease:a", "jobs:leased_by_session:a"):
        assert raw.get(key) == HOLDER
        assert 595_000 < raw.pttl(key) <= 600_000
    assert raw.dbsize() == 6


def test_five_minutes_unless_told(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    rwq("lease")
    assert 295_000 < foreign.raw.pttl("jobs:lease:a") <= 300_000


@pytest.mark.parametrize(
    ("text", "ms"),
    [("500ms", 500), ("30s", 30_000), ("45", 45_000), ("1h30m", 5_400_000), ("2d", 172_800_000)],
)
def test_durations(rwq: Rwq, foreign: Foreign, text: str, ms: int) -> None:
    foreign.waiting(b"a")
    assert rwq("lease", "--for", text).code == 0
    assert ms - 400 < foreign.raw.pttl("jobs:lease:a") <= ms


def test_the_session_is_that_of_the_shell(rwq: Rwq, foreign: Foreign) -> None:
    """Two commands of one shell have one holder, so that the second may release."""
    foreign.waiting(b"a")
    assert rwq.shell("rwq lease -o ids && rwq release a", {"RWQ_SESSION": ""}).code == 0
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"a"]
    foreign.raw.flushall()
    foreign.waiting(b"b")
    rwq("lease", variables={"RWQ_SESSION": "mine", "USER": "ann"})
    holder = foreign.raw.get("jobs:lease:b")
    assert holder == f"rwq:ann@{os.uname().nodename}:mine".encode()


def test_several_in_order(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(*(b"%04d" % number for number in range(2500)))
    result = rwq("lease", "-n", "2400", "-o", "ids")
    assert result.text.split() == [f"{number:04}" for number in range(2400)]
    assert foreign.raw.llen("jobs:queue") == 100
    assert foreign.raw.llen("jobs:processing") == 2400


def test_fewer_than_asked_for_are_no_failure(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    assert rwq("lease", "-n", "5", "-o", "ids").as_tuple() == (0, "a\nb\n", "")


def test_the_data_of_one_are_exact(rwq: Rwq, raw: redis.Redis) -> None:
    data = bytes(range(256)) * 10 + b"\n\n"
    rwq("add", "--format", "raw", stdin=data)
    assert rwq.process("lease", "-o", "data").out == data
    assert raw.llen("jobs:processing") == 1


def test_the_data_of_several_end_with_a_line_end_or_nul(rwq: Rwq) -> None:
    rwq("add", "one", "two")
    assert rwq("lease", "-n", "2", "-o", "data").out == b"one\ntwo\n"
    rwq("add", "one", "two\n2")
    assert rwq("lease", "-n", "2", "-o", "data", "-0").out == b"one\0two\n2\0"


def test_an_item_in_json(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    (record,) = rwq("lease", "--for", "1h", "-o", "json").json
    assert record == {
        "queue": "jobs",
        "queue_b64": None,
        "id": "a",
        "id_b64": None,
        "state": "leased",
        "bytes": 9,
        "data": "data of a",
        "data_b64": None,
        "preview": "data of a",
        "position": None,
        "idle_seconds": None,
        "lease": {"holder": HOLDER.decode(), "ttl_ms": 3_600_000},
        "due_ms": None,
        "buried_ms": None,
        "reason": None,
        "reason_b64": None,
        "returns": None,
    }


def test_plain(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a")
    assert rwq("lease").as_tuple() == (0, "a\t300000\t9\tdata of a\n", "")


def test_ghosts_are_dropped_on_the_way(rwq: Rwq, foreign: Foreign) -> None:
    foreign.raw.lpush("jobs:queue", "ghost1", "ghost2")
    foreign.waiting(b"a")
    assert rwq("lease", "-o", "ids").as_tuple() == (0, "a\n", "")
    assert foreign.raw.exists("jobs:queue", "jobs:lease:ghost1") == 0


def test_nothing_but_ghosts_is_nothing(rwq: Rwq, raw: redis.Redis) -> None:
    raw.lpush("jobs:queue", "ghost")
    assert rwq("lease").as_tuple() == (1, "", "Nothing to lease in jobs.\n")
    assert raw.keys() == []


def test_dry_run(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    before = sorted(foreign.raw.keys())
    result = rwq("lease", "-n", "5", "--dry-run", "-o", "ids")
    assert result.as_tuple() == (
        0,
        "a\nb\n",
        "dry run, nothing changed: these would be leased now\n",
    )
    assert sorted(foreign.raw.keys()) == before


def test_a_dry_run_leases_no_ghost(rwq: Rwq, foreign: Foreign) -> None:
    """The same report as the real thing: a ghost is not leased but dropped."""
    foreign.raw.lpush("jobs:queue", "ghost")
    foreign.waiting(b"a")
    assert rwq("lease", "--dry-run", "-o", "ids").text == "a\n"


def test_a_dry_run_of_nothing(rwq: Rwq) -> None:
    result = rwq("lease", "--dry-run")
    assert (result.code, result.text) == (1, "")
    assert result.notes.endswith("Nothing to lease in jobs.\n")


class TestWaiting:
    def test_until_there_is_one(self, rwq: Rwq, raw: redis.Redis) -> None:
        process = rwq.start("lease", "--wait", "-o", "data")
        until(lambda: raw.info("clients")["blocked_clients"] == 1)
        assert rwq("add", "x", "--id", "a").code == 0
        assert process.communicate(timeout=5) == (b"x", b"")
        assert process.returncode == 0
        assert raw.lrange("jobs:processing", 0, -1) == [b"a"]

    def test_for_so_long(self, rwq: Rwq) -> None:
        began = time.monotonic()
        assert rwq("lease", "--timeout", "300ms").as_tuple() == (
            1,
            "",
            "Nothing to lease in jobs.\n",
        )
        assert 0.29 < time.monotonic() - began < 1.0

    def test_not_at_all(self, rwq: Rwq) -> None:
        began = time.monotonic()
        assert rwq("lease").code == 1
        assert rwq("lease", "--timeout", "0").code == 1
        assert time.monotonic() - began < 0.2

    def test_only_for_the_first(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"a")
        began = time.monotonic()
        assert rwq("lease", "-n", "2", "--wait", "-o", "ids").text == "a\n"
        assert time.monotonic() - began < 0.5

    def test_several_wait_for_one(self, rwq: Rwq, raw: redis.Redis) -> None:
        waiting = [rwq.start("lease", "--timeout", "3s", "-o", "ids") for _ in range(3)]
        until(lambda: raw.info("clients")["blocked_clients"] == 3)
        rwq("add", "x", "y", "z", "--id-from", "line")
        taken = sorted(process.communicate(timeout=10)[0] for process in waiting)
        assert taken == [b"x\n", b"y\n", b"z\n"]

    def test_behind_an_upstream_worker_order_is_kept(self, rwq: Rwq, raw: redis.Redis) -> None:
        process = rwq.start("lease", "--wait", "-o", "ids")
        until(lambda: raw.info("clients")["blocked_clients"] == 1)
        Foreign(raw).waiting(b"a")
        assert process.communicate(timeout=5)[0] == b"a\n"
