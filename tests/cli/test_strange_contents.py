"""Whatever a server can hold, no command calls it a bug of rwq, and JSON stays JSON."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import redis

from tests.conftest import Foreign
from tests.driver import Rwq

LINES = (
    *("ls", "ls all --data", "ls delayed", "ls buried", "leases", "show a b c d", "stats --deep"),
    *("queues", "doctor --grace 0 --skip no-persistence", "check", "check --format prometheus"),
    *("result gone", "export", "wait --timeout 0", "lease --dry-run -n 5"),
    *("clean deep --grace 0 --dry-run", "complete a b --dry-run", "rm a b --dry-run"),
    *("release --force --yes a b", "bury --force --yes a b", "kick a b", "clean deep --grace 0"),
    *("doctor --grace 0 --fix", "purge --yes"),
)


def _of_type(key: str, kind: str) -> Callable[[redis.Redis], object]:
    """Replaces a key with one of another type."""
    makers: dict[str, Callable[[redis.Redis], object]] = {
        "list": lambda raw: raw.lpush(key, "x"),
        "hash": lambda raw: raw.hset(key, "x", "y"),
        "zset": lambda raw: raw.zadd(key, {"x": 1}),
        "string": lambda raw: raw.set(key, "x"),
    }
    return lambda raw: (raw.delete(key), makers[kind](raw))


def _score(zset: str, score: str) -> Callable[[redis.Redis], object]:
    return lambda raw: raw.zadd(f"jobs:{zset}", {"d": score, "a": score})  # type: ignore[dict-item]


def _result(**fields: str) -> Callable[[redis.Redis], object]:
    return lambda raw: raw.hset("jobs:result:gone", mapping=fields)


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
    **{
        f"{zset} has the score {score}": _score(zset, score)
        for zset in ("delayed", "buried")
        for score in ("inf", "-inf", "1e300", "-1e300", "1.5", "-5", "1e17")
    },
    **{
        f"returns are {value!r}": lambda raw, value=value: raw.hset("jobs:returns", "a", value)
        for value in ("x", "", "-1", "1e400", "9" * 30)
    },
    "a result has no status": _result(x="y"),
    "a result has an unknown status": _result(status="x", completed_ms="1"),
    "a result has a time that is no number": _result(status="completed", completed_ms="x"),
    "a result has a time beyond 64 bits": _result(status="completed", completed_ms="9" * 30),
    "a lease ends in a million years": lambda raw: raw.pexpireat("jobs:lease:c", 3 * 10**16),
    "a holder is empty": lambda raw: raw.set("jobs:lease:c", ""),
}


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} is no JSON")


@pytest.mark.parametrize("contents", CONTENTS)
def test_is_no_bug_of_rwq(rwq: Rwq, foreign: Foreign, contents: str) -> None:
    for line in LINES:
        for output in ("json", "table"):
            foreign.raw.flushall()
            foreign.waiting(b"a", b"b")
            foreign.abandoned(b"c")
            foreign.lease(b"c")
            foreign.data(b"d")
            foreign.raw.zadd(foreign.keys.delayed, {b"d": 10**15})
            CONTENTS[contents](foreign.raw)
            result = rwq(*line.split(), "-o", output)
            assert b"this is a bug" not in result.out + result.err, (line, output)
            if output == "json" and result.out:
                json.loads(result.out, parse_constant=_no_constant)
