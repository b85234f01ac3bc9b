"""Whatever the keys of a queue hold, a command says what it is, and never fails by it."""

import math

import pytest
import redis

from tests.conftest import Foreign
from tests.driver import Rwq

SCORES = (math.inf, -math.inf, 1e300, -1e300, 2.0**63, -5.5)
COUNTS = (b"x", b"", b"-1", b"9" * 40, b"1e9", b"\xff", b"1.5", b" 3")
LOOKS = (
    *("ls all", "ls delayed", "ls buried", "leases", "stats --deep", "show -", "queues"),
    *("doctor --grace 0", "check --deep", "export", "ls all --state orphaned,duplicated,ghost"),
    *("result odd1", "result odd2", "result odd3", "result odd4", "result odd5"),
)
ACTS = (
    *("clean light --grace 0", "clean deep --grace 0", "clean light --bury-after 1 --grace 0"),
    *("doctor --fix --grace 0", "lease -n 50", "release --force --yes -", "release --delay 5s -"),
    *("bury --force --yes -", "kick -", "complete -", "rm --yes -", "mv --to other --yes -"),
    *("purge --yes --grace 0",),
)


@pytest.fixture
def odd_ids(raw: redis.Redis, foreign: Foreign) -> bytes:
    """A queue in which everything that can hold a strange value does; the IDs, a line each."""
    ids: list[bytes] = []
    for number, score in enumerate(SCORES):
        delayed, buried, loose = b"d%d" % number, b"b%d" % number, b"n%d" % number
        foreign.delayed(delayed, 10**13)
        foreign.buried(buried)
        foreign.data(loose)
        raw.zadd("jobs:delayed", {delayed: score, loose: score})
        raw.zadd("jobs:buried", {buried: score})
        ids += (delayed, buried, loose)
    for number, count in enumerate(COUNTS):
        waiting, abandoned, gone = b"w%d" % number, b"a%d" % number, b"g%d" % number
        foreign.waiting(waiting)
        foreign.abandoned(abandoned)
        raw.hset("jobs:returns", mapping=dict.fromkeys((waiting, abandoned, gone), count))
        ids += (waiting, abandoned, gone)
    raw.hset("jobs:result:odd1", mapping={"status": "completed", "completed_ms": "x"})
    raw.hset("jobs:result:odd2", mapping={"status": "?", "completed_ms": "5"})
    raw.hset("jobs:result:odd3", mapping={"status": "completed", "completed_ms": "9" * 30})
    raw.set("jobs:result:odd4", "x")
    raw.lpush("jobs:result:odd5", "x")
    raw.hset("jobs:item:hash", "a", "b")
    raw.lpush("jobs:queue", "hash")
    foreign.leased(b"set for a lease")
    raw.delete("jobs:lease:set for a lease")
    raw.sadd("jobs:lease:set for a lease", "x")
    foreign.lease(b"stray", holder=b"", ttl_ms=None)
    raw.set("jobs:lease:nearly endless", "x", px=2**52)
    foreign.abandoned(b"nearly endless")
    return b"\n".join((*ids, b"hash", b"set for a lease", b"stray", b"nearly endless"))


@pytest.mark.parametrize("output", ["table", "jsonl", "csv"])
@pytest.mark.parametrize("words", LOOKS)
def test_looking(rwq: Rwq, odd_ids: bytes, words: str, output: str) -> None:
    options = () if words == "export" else ("-o", output)
    result = rwq(*words.split(), *options, stdin=odd_ids)
    assert "bug in rwq" not in result.notes


@pytest.mark.parametrize("words", ACTS)
@pytest.mark.parametrize("dry_run", [True, False])
def test_acting(rwq: Rwq, odd_ids: bytes, words: str, dry_run: bool) -> None:
    result = rwq(*words.split(), *["--dry-run"] * dry_run, stdin=odd_ids)
    assert "bug in rwq" not in result.notes


@pytest.mark.parametrize("score", [math.inf, 1e300])
def test_a_time_that_is_none_is_null(
    rwq: Rwq, raw: redis.Redis, foreign: Foreign, score: float
) -> None:
    foreign.delayed(b"d", 10**13)
    raw.zadd("jobs:delayed", {"d": score})
    (listed,) = rwq("ls", "delayed", "-o", "json").json
    assert (listed["id"], listed["state"], listed["due_ms"]) == ("d", "delayed", None)
    (shown,) = rwq("show", "d", "-o", "jsonl").jsonl
    assert (shown["due_ms"], shown["next_in_seconds"]) == (None, None)
    assert shown["findings"] == ["invalid-score"]
    assert "which is no time" in rwq("show", "d", "-o", "table").text
    (finding,) = rwq("doctor", "--grace", "0", "--only", "invalid-score", "-o", "jsonl").jsonl
    assert (finding["count"], finding["examples"]) == (1, ["d"])


def test_a_time_with_a_fraction_is_a_whole_number(
    rwq: Rwq, raw: redis.Redis, foreign: Foreign
) -> None:
    foreign.delayed(b"d", 10**13)
    raw.zadd("jobs:delayed", {"d": 9_999_999_999_999.125})
    (listed,) = rwq("ls", "delayed", "-o", "json").json
    assert listed["due_ms"] == 9_999_999_999_999
