"""A client whose clock is days wrong: all times are the server's, so it changes nothing."""

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.driver import TIMEOUT_S, Rwq, until
from tests.servers import PrivateServer

_HOUR_MS = 3_600_000
_DAYS_S = 3 * 86_400
# A busy machine may take so long from our look at the server's clock to the command's own.
_SLACK_MS = 20_000

_WRONG_RWQ = (sys.executable, "-m", "tests.end_to_end.wrong_clock")


@pytest.fixture
def wrong(request: pytest.FixtureRequest, server: PrivateServer, tmp_path: Path) -> Iterator[Rwq]:
    """rwq as a process whose clock is three days ahead, or as many seconds as are given."""
    variables = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "USER": "tester",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "RWQ_URL": server.url,
        "RWQ_QUEUE": "jobs",
        "WRONG_BY_S": str(getattr(request, "param", _DAYS_S)),
    }
    rwq = Rwq(variables, tmp_path)
    yield rwq
    rwq.close()


def now_ms(raw: redis.Redis) -> int:
    """The server's clock, unix ms."""
    seconds, microseconds = raw.time()
    return int(seconds) * 1000 + int(microseconds) // 1000


def does(wrong: Rwq, *words: str, code: int = 0) -> list[str]:
    """Run it as a process; its lines."""
    process = wrong.start(*words, command=_WRONG_RWQ)
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == code, (out, err)
    return out.decode().splitlines()


def tells(wrong: Rwq, *words: str) -> Any:
    """The JSON that it prints."""
    return json.loads("\n".join(does(wrong, *words, "-o", "json")))


def shows_the_same(wrong: Rwq, *words: str) -> bool:
    """Whether its output is that of a client whose clock is right."""
    return does(wrong, *words) == wrong(*words).text.splitlines()


both_ways = pytest.mark.parametrize(
    "wrong", [_DAYS_S, -_DAYS_S], ids=["ahead", "behind"], indirect=True
)


def is_about(found_ms: float | None, expected_ms: float) -> bool:
    return found_ms is not None and 0 <= found_ms - expected_ms < _SLACK_MS


@both_ways
def test_the_clock_is_wrong(wrong: Rwq) -> None:
    """Without this, the others would prove nothing."""
    here = datetime.now().timestamp()
    lines = does(wrong, "tell")
    assert len(lines) == 2
    for there in map(float, " ".join(lines).split()):
        off_s = there - here - float(wrong.variables["WRONG_BY_S"])
        assert abs(off_s) < _SLACK_MS / 1000


def test_due_times_are_by_the_servers_clock(wrong: Rwq, raw: redis.Redis) -> None:
    began_ms = now_ms(raw)
    at_ms = began_ms + 2 * _HOUR_MS
    clock = datetime.fromtimestamp(began_ms / 1000, UTC) + timedelta(hours=3)

    does(wrong, "add", "--id", "delay", "--delay", "1h", "x")
    does(wrong, "add", "--id", "at", "--at", f"@{at_ms / 1000:.3f}", "x")
    does(wrong, "add", "--id", "clock", "--at", f"{clock:%H:%M}", "x")
    does(wrong, "add", "--id", "zone", "--at", f"{clock:%Y-%m-%dT%H:%M}Z", "x")
    does(wrong, "add", "--id", "past", "--at", f"@{began_ms / 1000 - 60:.3f}", "x")

    assert raw.lrange("jobs:queue", 0, -1) == [b"past"]
    minute_ms = clock.replace(second=0, microsecond=0).timestamp() * 1000
    due_ms = dict(raw.zrange("jobs:delayed", 0, -1, withscores=True))
    assert is_about(due_ms[b"delay"], began_ms + _HOUR_MS)
    assert abs(due_ms[b"at"] - at_ms) < 1
    assert abs(due_ms[b"clock"] - minute_ms) < 1
    assert abs(due_ms[b"zone"] - minute_ms) < 1
    for item_id in due_ms:
        for kind in (b"lease", b"leased_by_session"):
            ends_ms = now_ms(raw) + raw.pttl(b"jobs:%s:%s" % (kind, item_id))
            assert abs(ends_ms - due_ms[item_id] - 60_000) < 1000


@both_ways
def test_only_due_items_are_promoted(wrong: Rwq, raw: redis.Redis) -> None:
    does(wrong, "add", "--id", "later", "--delay", "1h", "x")
    does(wrong, "add", "--id", "soon", "--delay", "1h", "x")

    assert does(wrong, "lease", "-o", "ids", code=1) == []
    for depth in ("light", "deep"):
        does(wrong, "clean", depth, "--grace", "0")
    assert raw.llen("jobs:queue") == 0
    (first, second) = tells(wrong, "ls", "delayed")
    assert [first["state"], second["state"]] == ["delayed", "delayed"]
    until(lambda: shows_the_same(wrong, "ls", "delayed", "-o", "table"))

    raw.zadd("jobs:delayed", {"soon": now_ms(raw) - 1})
    assert does(wrong, "ls", "delayed", "-o", "ids") == ["soon", "later"]
    assert does(wrong, "show", "soon", "-o", "json")[0]
    assert [item["state"] for item in tells(wrong, "ls", "delayed")] == [
        "due",
        "delayed",
    ]
    assert does(wrong, "lease", "--for", "1h", "-o", "ids") == ["soon"]
    assert abs(raw.pttl("jobs:lease:soon") - _HOUR_MS) < _SLACK_MS
