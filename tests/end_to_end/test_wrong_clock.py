"""A client whose clock is days wrong: all times are the server's, so it changes nothing."""

import datetime
import sys
import time
from itertools import product
from typing import Any

import pytest
import redis

from tests.driver import Rwq

_HOUR_MS = 3_600_000
_DAYS_S = 3 * 86_400
# A busy machine may take so long from our look at the server's clock to the command's own.
_SLACK_MS = 20_000
_right_s = time.time


@pytest.fixture(params=[_DAYS_S, -_DAYS_S], ids=["ahead", "behind"])
def wrong(request: pytest.FixtureRequest, rwq: Rwq, monkeypatch: pytest.MonkeyPatch) -> Rwq:
    """rwq while the clock of this process is wrong, in whatever module has taken it by `from`."""
    shift_s = float(request.param)
    localtime, gmtime = time.localtime, time.gmtime

    def wrong_s() -> float:
        return _right_s() + shift_s

    class Wrong(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> "Wrong":
            return cls.fromtimestamp(wrong_s(), tz)

    # By the identity of what is replaced.
    replacing: dict[int, Any] = {
        id(time.time): wrong_s,
        id(time.time_ns): lambda: int(wrong_s() * 10**9),
        id(localtime): lambda secs=None: localtime(wrong_s() if secs is None else secs),
        id(gmtime): lambda secs=None: gmtime(wrong_s() if secs is None else secs),
        id(datetime.datetime): Wrong,
    }
    for line in ("add x", "lease", "clean light --grace 0", "ls", "show x"):
        # Imports what it needs.
        rwq(*line.split(), "-q", "other")
    touched = set()
    for name, module in [*sys.modules.items()]:
        if name in ("time", "datetime") or name.startswith(("rwq_cli", "redis")):
            for each, value in [*vars(module).items()]:
                if id(value) in replacing:
                    monkeypatch.setattr(module, each, replacing[id(value)])
                    touched.add(name.partition(".")[0])
    assert touched >= {"time", "datetime", "rwq_cli"}
    assert abs(time.time() - _right_s() - shift_s) < 1
    return rwq


def now_ms(raw: redis.Redis) -> int:
    """The server's clock, unix ms."""
    seconds, microseconds = raw.time()
    return int(seconds) * 1000 + int(microseconds) // 1000


def is_about(found_ms: float, expected_ms: float) -> bool:
    return 0 <= found_ms - expected_ms < _SLACK_MS


def test_due_times_are_by_the_servers_clock(wrong: Rwq, raw: redis.Redis) -> None:
    began_ms = now_ms(raw)
    at_ms = began_ms + 2 * _HOUR_MS
    clock = datetime.datetime.fromtimestamp(began_ms / 1000, datetime.UTC)
    clock += datetime.timedelta(hours=3)
    lines = {
        "delay": ("--delay", "1h"),
        "at": ("--at", f"@{at_ms / 1000:.3f}"),
        "clock": ("--at", f"{clock:%H:%M}Z"),
        "zone": ("--at", f"{clock:%Y-%m-%dT%H:%M}Z"),
        "past": ("--at", f"@{began_ms / 1000 - 60:.3f}"),
    }
    codes = {name: wrong("add", "--id", name, *line, "x").code for name, line in lines.items()}
    assert codes == dict.fromkeys(lines, 0)
    assert raw.lrange("jobs:queue", 0, -1) == [b"past"]
    minute_ms = clock.replace(second=0, microsecond=0).timestamp() * 1000
    due_ms = dict(raw.zrange("jobs:delayed", 0, -1, withscores=True))
    assert is_about(due_ms[b"delay"], began_ms + _HOUR_MS)
    assert abs(due_ms[b"at"] - at_ms) < 1
    assert abs(due_ms[b"clock"] - minute_ms) < 1
    assert abs(due_ms[b"zone"] - minute_ms) < 1
    names = product((b"lease", b"leased_by_session"), due_ms)
    ends_ms = [now_ms(raw) + raw.pttl(b"jobs:%s:%s" % name) for name in names]
    assert ends_ms == pytest.approx([due + 60_000 for due in (*due_ms.values(),) * 2], abs=999)


def test_only_due_items_are_promoted(wrong: Rwq, raw: redis.Redis) -> None:
    add = ("add", "--delay", "1h", "x", "--id")
    assert [wrong(*add, "later").code, wrong(*add, "soon").code] == [0, 0]
    assert wrong("lease", "-o", "ids").code == 1
    assert [wrong("clean", depth, "--grace", "0").code for depth in ("light", "deep")] == [0, 0]
    assert raw.llen("jobs:queue") == 0
    assert [item["state"] for item in wrong("ls", "delayed", "-o", "json").json] == ["delayed"] * 2
    assert "in 59m" in wrong("ls", "delayed", "-o", "table").text
    raw.zadd("jobs:delayed", {"soon": now_ms(raw) - 1})
    found = wrong("ls", "delayed", "-o", "json").json
    assert [(item["id"], item["state"]) for item in found] == [
        ("soon", "due"),
        ("later", "delayed"),
    ]
    assert wrong("lease", "--for", "1h", "-o", "ids").text == "soon\n"
    assert abs(raw.pttl("jobs:lease:soon") - _HOUR_MS) < _SLACK_MS
