"""`rwq lease`: takes the next items, under a lease of ours, and waits without popping."""

import json
import os
import re
import time
from collections.abc import Callable

import pytest
import redis

from tests.conftest import Foreign, lasts
from tests.driver import TIMEOUT_S, Rwq, until

HOLDER = f"rwq:tester@{os.uname().nodename}:s1".encode()


def test_a_lease_is_written_under_both_names(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    raw = foreign.raw
    assert rwq("lease", "--for", "10m", "-o", "ids").as_tuple() == (0, "a\n", "")
    assert raw.lrange("jobs:queue", 0, -1) == [b"b"]
    assert raw.lrange("jobs:processing", 0, -1) == [b"a"]
    assert raw.get("jobs:item:a") == b"data of a"
    for key in ("jobs:lease:a", "jobs:leased_by_session:a"):
        assert raw.get(key) == HOLDER
        assert lasts(raw, 600, key)
    assert raw.dbsize() == 6


@pytest.mark.parametrize(
    ("text", "ms"),
    [("500ms", 500), ("30s", 30_000), ("45", 45_000), ("1h30m", 5_400_000), ("2d", 172_800_000)],
)
def test_a_lease_lasts_as_long_as_asked(rwq: Rwq, foreign: Foreign, text: str, ms: int) -> None:
    foreign.waiting(b"a")
    assert rwq("lease", "--for", text).code == 0
    assert lasts(foreign.raw, ms / 1000, "jobs:lease:a")


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


def test_several_items_are_leased_in_order(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(*(b"%04d" % number for number in range(2500)))
    result = rwq("lease", "-n", "2400", "-o", "ids")
    assert result.text.split() == [f"{number:04}" for number in range(2400)]
    assert foreign.raw.llen("jobs:queue") == 100
    assert foreign.raw.llen("jobs:processing") == 2400


def test_the_data_of_one_item_are_printed_unchanged(rwq: Rwq, raw: redis.Redis) -> None:
    data = bytes(range(256)) * 10 + b"\n\n"
    rwq("add", "--format", "raw", stdin=data)
    assert rwq.process("lease", "-o", "data").out == data
    assert raw.llen("jobs:processing") == 1


@pytest.mark.parametrize("by_id", [True, False])
def test_with_data_output_the_lease_is_printed_on_stderr(
    rwq: Rwq, foreign: Foreign, by_id: bool
) -> None:
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
        "data_json": None,
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


def test_a_dry_run_leases_nothing(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    before = sorted(foreign.raw.keys())
    result = rwq("lease", "-n", "5", "--dry-run", "-o", "ids")
    assert result.as_tuple() == (
        0,
        "a\nb\n",
        "dry run: these would be leased now\n",
    )
    assert sorted(foreign.raw.keys()) == before


class TestWaiting:
    def test_wait_lasts_until_an_item_is_added(self, rwq: Rwq, raw: redis.Redis) -> None:
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

    def test_a_timeout_ends_the_wait(self, rwq: Rwq) -> None:
        began = time.monotonic()
        assert rwq("lease", "--timeout", "100ms").as_tuple() == (
            1,
            "",
            "waiting for an item in jobs, 0.1s at most\nNothing to lease in jobs.\n",
        )
        assert time.monotonic() - began >= 0.1


QUEUES = ("-q", "high", "-q", "normal", "-q", "low")


class TestSeveralQueues:
    @pytest.fixture(autouse=True)
    def filled(self, raw: redis.Redis) -> None:
        Foreign(raw, b"normal").waiting(b"n1", b"n2")
        Foreign(raw, b"low").waiting(b"l1")

    def test_the_first_queue_with_an_item_wins(self, rwq: Rwq, raw: redis.Redis) -> None:
        records = rwq("lease", *QUEUES, "-n", "5", "-o", "jsonl").jsonl
        assert [(record["queue"], record["id"]) for record in records] == [
            ("normal", "n1"),
            ("normal", "n2"),
        ]
        assert raw.lrange("low:queue", 0, -1) == [b"l1"]
        result = rwq("lease", *QUEUES, "-o", "data")
        assert (result.code, result.text) == (0, "data of l1")
        assert result.notes.startswith("leased l1 of low for 5m, until ")
        assert rwq("lease", *QUEUES).as_tuple() == (
            1,
            "",
            "Nothing to lease in high, normal, low.\n",
        )

    def test_a_table_begins_with_the_queue(self, rwq: Rwq) -> None:
        assert rwq("lease", *QUEUES, "-o", "table").lines == [
            "QUEUE   ID  TIME LEFT  SIZE  DATA",
            "─" * 39,
            "normal  n1         5m  10 B  data of n1",
        ]

    def test_ids_without_their_queue_are_refused(self, rwq: Rwq, raw: redis.Redis) -> None:
        assert rwq("lease", *QUEUES, "-o", "ids").as_tuple() == (
            2,
            "",
            "rwq: error: -o ids does not show which of several queues an item comes from; "
            "use -o jsonl, csv or plain\n",
        )
        assert raw.exists("normal:processing") == 0
        assert rwq("lease", "-q", "low", "-q", "low", "-o", "ids").text == "l1\n"

    def test_fair_shuffles_the_queues(self, rwq: Rwq, raw: redis.Redis) -> None:
        """Of two queues each is the first in its turn; neither of them for forty times in a row."""
        Foreign(raw, b"low").waiting(*(b"%d" % number for number in range(60)))
        Foreign(raw, b"normal").waiting(*(b"%d" % number for number in range(60)))
        taken = [
            rwq("lease", *QUEUES, "--fair", "-o", "jsonl").jsonl[0]["queue"] for _ in range(40)
        ]
        assert set(taken) == {"normal", "low"}
        result = rwq("lease", *QUEUES, "--fair", "--dry-run", "-o", "jsonl")
        assert result.jsonl[0]["queue"] in ("normal", "low")

    def test_a_push_onto_any_queue_ends_the_wait(self, rwq: Rwq, raw: redis.Redis) -> None:
        raw.flushall()
        for name in (b"low", b"high", b"normal"):
            process = rwq.start("lease", *QUEUES, "--wait", "-n", "2", "-o", "jsonl")
            until(lambda: raw.info("clients")["blocked_clients"] == 3)
            Foreign(raw, name).waiting(b"a")
            out, err = process.communicate(timeout=TIMEOUT_S)
            assert (json.loads(out)["queue"], err) == (name.decode(), b"")


class TestLeaseById:
    def test_an_item_is_leased_in_any_waiting_state(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.waiting(b"1", b"2", b"3")
        foreign.delayed(b"d", 9_999_999_999_999)
        foreign.buried(b"b")
        for item_id in ("2", "d", "b"):
            result = rwq("lease", "--id", item_id, "--for", "1h")
            line = f"{item_id}\t3600000\t9\tdata of {item_id}\n"
            assert result.as_tuple() == (0, line, "")
        raw = foreign.raw
        assert raw.lrange("jobs:queue", 0, -1) == [b"3", b"1"]
        assert raw.lrange("jobs:processing", 0, -1) == [b"b", b"d", b"2"]
        assert raw.exists("jobs:delayed", "jobs:buried") == 0
        for item_id in ("2", "d", "b"):
            for key in (f"jobs:lease:{item_id}", f"jobs:leased_by_session:{item_id}"):
                assert raw.get(key) == HOLDER
                assert lasts(raw, 3600, key)

    def test_a_leased_item_stays_with_its_holder(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.leased(b"a", holder=b"worker-7", ttl_ms=3_600_500)
        said = (
            "a is leased by worker-7 for 1h more; to end that lease: rwq release --force -q "
            "jobs a\n"
        )
        assert rwq("lease", "--id", "a").as_tuple() == (1, "", said)
        assert rwq("lease", "--id", "a", "-o", "table").as_tuple() == (1, said, "")
        assert rwq("lease", "--id", "a", "-o", "json").as_tuple() == (1, "[]\n", said)
        assert rwq("lease", "--id", "a", "-o", "ids").as_tuple() == (1, "", said)

    @pytest.mark.parametrize(
        ("arrange", "said"),
        [
            (
                lambda there: there.leased(b"a", ttl_ms=None),
                "a is leased by them without expiry; to end that lease: rwq release --force -q "
                "jobs a",
            ),
            (
                lambda there: there.abandoned(b"a"),
                "a is abandoned, not waiting; to return it: rwq release -q jobs a (a "
                "light clean also returns it)",
            ),
            (
                lambda there: there.data(b"a"),
                "a is orphaned, not waiting; to return it: rwq release -q jobs a (a "
                "deep clean also returns it)",
            ),
            (lambda _: None, "no such item: a"),
        ],
        ids=["held", "abandoned", "orphaned", "gone"],
    )
    @pytest.mark.parametrize("more", [(), ("--dry-run",)])
    def test_an_item_that_does_not_wait_is_refused_with_a_hint(
        self,
        rwq: Rwq,
        foreign: Foreign,
        arrange: Callable[[Foreign], object],
        said: str,
        more: tuple[str, ...],
    ) -> None:
        arrange(foreign)
        before = sorted(foreign.raw.keys())
        result = rwq("lease", "--id", "a", *more)
        assert (result.code, result.text) == (1, "")
        assert result.notes == f"{said}\n"
        assert sorted(foreign.raw.keys()) == before

    @pytest.mark.parametrize("more", ["-n 1", "--wait", "--timeout 1s", "--fair"])
    def test_ids_exclude_n_and_several_queues(self, rwq: Rwq, foreign: Foreign, more: str) -> None:
        foreign.waiting(b"a")
        assert rwq("lease", "--id", "a", *more.split()).as_tuple() == (
            2,
            "",
            "rwq: error: --id cannot be used with -n, --wait, --timeout or --fair; "
            "drop the other options\n",
        )
