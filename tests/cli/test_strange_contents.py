"""Whatever a server can hold, no command calls it a bug of rwq, and JSON stays JSON."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
import redis

from tests.conftest import Foreign
from tests.driver import Rwq

LOOKS = (
    *(
        "ls",
        "ls all --data",
        "ls delayed",
        "ls buried",
        "ls --state orphaned --state duplicated --state ghost",
    ),
    *("leases", "show -", "stats --deep", "queues", "doctor --grace 0 --skip no-persistence"),
    *("check --deep", "check --format prometheus", "result gone", "result a", "wait --timeout 0"),
)
ACTS = (
    *("lease -n 50", "complete -", "release --force --yes -", "release --delay 5s -"),
    *("bury --force --yes -", "kick -", "rm --yes -", "mv --to other --yes -"),
    *("clean light --grace 0", "clean light --grace 0 --bury-after 1", "clean deep --grace 0"),
    *("doctor --grace 0 --fix", "purge --yes"),
    *("edit a --yes -f /dev/null", "edit gone --yes -f /dev/null", "edit a"),
)
# What acts says the same in JSON; a table only shows it, as that of the dry run does.
LINES = (
    *((line, output) for line in LOOKS for output in ("jsonl", "table")),
    ("export", "jsonl"),
    *((line, "jsonl") for line in ACTS),
    *((f"{line} --dry-run", "table") for line in ACTS),
)
IDS = b"a\nb\nc\nd\ngone"


def _of_type(key: str, kind: str) -> Callable[[redis.Redis], object]:
    """Replaces a key with one of another type."""
    makers: dict[str, Callable[[redis.Redis], object]] = {
        "list": lambda raw: raw.lpush(key, "x"),
        "hash": lambda raw: raw.hset(key, "x", "y"),
        "zset": lambda raw: raw.zadd(key, {"x": 1}),
        "string": lambda raw: raw.set(key, "x"),
    }
    return lambda raw: (raw.delete(key), makers[kind](raw))


def _scores(zset: str) -> Callable[[redis.Redis], object]:
    """An item for each score; two that wait have one, too."""
    scores = ("inf", "-inf", "1e300", "-1e300", "1.5", "-5.5", "1e17", str(2**63))
    entries = {f"d{number}": score for number, score in enumerate(scores)}

    def make(raw: redis.Redis) -> None:
        raw.mset({f"jobs:item:{item_id}": "x" for item_id in entries})
        raw.zadd(f"jobs:{zset}", entries | {"a": "inf", "b": "-inf"})  # type: ignore[arg-type]

    return make


CONTENTS: dict[str, Callable[[redis.Redis], object]] = {
    **{
        f"{key} is a {kind}": _of_type(key, kind)
        for key, kind in (
            *(("jobs:queue", "string"), ("jobs:processing", "hash"), ("jobs:cleaning", "zset")),
            *(("jobs:delayed", "list"), ("jobs:buried", "string"), ("jobs:returns", "list")),
            *(("jobs:item:a", "hash"), ("jobs:lease:a", "list"), ("jobs:result:gone", "string")),
            ("jobs:leased_by_session:a", "hash"),
        )
    },
    "delayed has strange scores": _scores("delayed"),
    "buried has strange scores": _scores("buried"),
    **{
        f"returns are {values}": lambda raw, values=values: raw.hset(
            "jobs:returns", mapping=dict(zip(("a", "c", "gone"), values, strict=True))
        )
        for values in ((b"x", b"", b"-1"), (b"1e400", b"9" * 30, b"\xff 3"))
    },
    "results have no status or an unknown one": lambda raw: (
        raw.hset("jobs:result:gone", mapping={"x": "y"}),
        raw.hset("jobs:result:a", mapping={"status": "x", "completed_ms": "1"}),
    ),
    "results have a time that is no number or beyond 64 bits": lambda raw: (
        raw.hset("jobs:result:gone", mapping={"status": "completed", "completed_ms": "x"}),
        raw.hset("jobs:result:a", mapping={"status": "completed", "completed_ms": "9" * 30}),
    ),
    "leases are empty, or end in a million years": lambda raw: (
        raw.pexpireat("jobs:lease:c", 3 * 10**16),
        raw.mset({"jobs:lease:gone": "", "jobs:lease:d": ""}),
    ),
    "a holder is empty": lambda raw: raw.set("jobs:lease:c", ""),
}


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} is no JSON")


@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize("contents", CONTENTS)
def test_no_command_calls_it_a_bug(rwq: Rwq, foreign: Foreign, contents: str) -> None:
    for line, output in LINES:
        writes = foreign.raw.pipeline()
        writes.flushall()
        there = Foreign(writes)
        there.waiting(b"a", b"b")
        there.abandoned(b"c")
        there.lease(b"c")
        there.data(b"d")
        writes.zadd(foreign.keys.delayed, {b"d": 10**15})
        CONTENTS[contents](writes)
        writes.execute()
        format_ = () if "export" in line or "--format" in line else ("-o", output)
        stdin = IDS if " -" in line else b""
        result = rwq(*line.split(), *format_, stdin=stdin, variables={"EDITOR": "true"})
        assert result.code in (0, 1, 3, 69), (line, output, result)
        assert b"a bug in rwq" not in result.out + result.err, (line, output)
        for record in result.out.splitlines() if output == "jsonl" and format_ else ():
            json.loads(record, parse_constant=_no_constant)


@pytest.mark.parametrize("score", [math.inf, 1e300])
def test_an_invalid_time_is_null(
    rwq: Rwq, raw: redis.Redis, foreign: Foreign, score: float
) -> None:
    foreign.delayed(b"d", 10**13)
    raw.zadd("jobs:delayed", {"d": score})
    (listed,) = rwq("ls", "delayed", "-o", "json").json
    assert (listed["id"], listed["state"], listed["due_ms"]) == ("d", "delayed", None)
    (shown,) = rwq("show", "d", "-o", "jsonl").jsonl
    assert (shown["due_ms"], shown["next_in_seconds"]) == (None, None)
    assert shown["findings"] == ["invalid-score"]
    assert "which is not a time" in rwq("show", "d", "-o", "table").text
    (finding,) = rwq("doctor", "--grace", "0", "--only", "invalid-score", "-o", "jsonl").jsonl
    assert (finding["count"], finding["examples"]) == (1, ["d"])


def test_a_time_with_a_fraction_is_a_whole_number(
    rwq: Rwq, raw: redis.Redis, foreign: Foreign
) -> None:
    foreign.delayed(b"d", 10**13)
    raw.zadd("jobs:delayed", {"d": 9_999_999_999_999.125})
    (listed,) = rwq("ls", "delayed", "-o", "json").json
    assert listed["due_ms"] == 9_999_999_999_999
