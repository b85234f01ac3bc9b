"""`rwq queues`: the queues of a server, found by their keys."""

import pytest
import redis

from tests.conftest import Foreign
from tests.driver import Rwq


@pytest.fixture(autouse=True)
def filled(raw: redis.Redis) -> None:
    Foreign(raw, b"mail:in").waiting(b"a", b"b")
    Foreign(raw, b"mail:out").leased(b"a")
    Foreign(raw, b"mail:out").abandoned(b"b", b"c")
    Foreign(raw, b"later").delayed(b"a", 9_999_999_999_999)
    Foreign(raw, b"broken").buried(b"a")
    raw.lpush("other:list", "x")
    raw.set("just:queue:string", "x")
    raw.set("str:queue", "x")
    raw.lpush(":queue", "x")


def test_a_pattern_selects_queues(rwq: Rwq) -> None:
    for pattern, names in {
        "mail:*": "mail:in mail:out",
        "*": "broken later mail:in mail:out",
        "mail": "",
        "[a-b]*": "broken",
    }.items():
        result = rwq("queues", pattern, "-o", "ids")
        assert (result.code, result.text.split()) == (0, names.split())


def test_counting_ends_in_time_and_says_so(
    rwq: Rwq, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rwq_cli.commands.queues.COUNT_S", 0.0)
    Foreign(raw, b"mail:out").abandoned(*(b"%d" % number for number in range(5000)))
    (record,) = rwq("queues", "mail:out", "-o", "json").json
    assert record["abandoned_is_least"]
    assert 1000 <= record["abandoned"] < 5000
    for width in ("80", "40"):
        lines = rwq("queues", "-o", "table", variables={"COLUMNS": width}).lines
        assert "ABANDONED" in lines[0]
        assert f">{record['abandoned']:,}" in lines[-1]
