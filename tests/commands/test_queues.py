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
    all_names = "broken later mail:in mail:out"
    names = {"mail:*": "mail:in mail:out", "*": all_names, "mail": "", "[a-b]*": "broken"}
    results = {pattern: rwq("queues", pattern, "-o", "ids") for pattern in names}
    assert {pattern: (result.code, result.text.split()) for pattern, result in results.items()} == {
        pattern: (0, text.split()) for pattern, text in names.items()
    }


def test_counting_ends_in_time_and_says_so(
    rwq: Rwq, raw: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rwq_cli.commands.queues.COUNT_S", 0.0)
    Foreign(raw, b"mail:out").abandoned(*(b"%d" % number for number in range(5000)))
    (record,) = rwq("queues", "mail:out", "-o", "json").json
    assert record["abandoned_is_least"]
    assert 1000 <= record["abandoned"] < 5000
    widths = ({"COLUMNS": "80"}, {"COLUMNS": "40"})
    tables = [rwq("queues", "-o", "table", variables=width).lines for width in widths]
    assert ["ABANDONED" in lines[0] for lines in tables] == [True, True], tables
    assert [f">{record['abandoned']:,}" in lines[-1] for lines in tables] == [True, True], tables
