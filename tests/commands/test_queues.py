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


def test_queues_are_sorted_and_counted(rwq: Rwq) -> None:
    result = rwq("queues", "-o", "json")
    counts = ("waiting", "processing", "abandoned", "delayed", "buried")
    assert [[record["queue"], *(record[name] for name in counts)] for record in result.json] == [
        ["broken", 0, 0, 0, 0, 1],
        ["later", 0, 0, 0, 1, 0],
        ["mail:in", 2, 0, 0, 0, 0],
        ["mail:out", 0, 3, 2, 0, 0],
    ]
    assert (result.code, result.notes) == (0, "")


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("mail:*", "mail:in mail:out"),
        ("*", "broken later mail:in mail:out"),
        ("mail", ""),
        ("?ater", "later"),
        ("[a-b]*", "broken"),
    ],
)
def test_a_pattern_selects_queues(rwq: Rwq, pattern: str, names: str) -> None:
    result = rwq("queues", pattern, "-o", "ids")
    assert (result.code, result.text.split()) == (0, names.split())


def test_plain_is_a_line_a_queue(rwq: Rwq) -> None:
    assert rwq("queues").as_tuple() == (
        0,
        "broken\t0\t0\t0\t1\t0\nlater\t0\t0\t1\t0\t0\n"
        "mail:in\t2\t0\t0\t0\t0\nmail:out\t0\t3\t0\t0\t2\n",
        "",
    )


def test_the_table_and_its_footer(rwq: Rwq) -> None:
    assert rwq("queues", "-o", "table").lines == [
        "QUEUE     WAITING  PROCESSING  ABANDONED  DELAYED  BURIED",
        "─────────────────────────────────────────────────────────",
        "broken          0           0          0        0       1",
        "later           0           0          0        1       0",
        "mail:in         2           0          0        0       0",
        "mail:out        0           3          2        0       0",
    ]


def test_no_match_is_an_empty_list(rwq: Rwq) -> None:
    assert rwq("queues", "x*", "-o", "table").as_tuple() == (0, "No such queues.\n", "")


def test_abandoned_items_are_counted_in_a_long_processing_list(rwq: Rwq, raw: redis.Redis) -> None:
    Foreign(raw, b"mail:out").abandoned(*(b"%d" % number for number in range(2500)))
    (record,) = rwq("queues", "mail:out", "-o", "json").json
    assert (record["processing"], record["abandoned"]) == (2503, 2502)
    assert rwq("queues", "-o", "table").lines[-1].split()[1:4] == ["0", "2,503", "2,502"]


def test_counting_ends_after_a_while_and_says_that_there_may_be_more(
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


def test_an_entry_behind_a_guard_is_not_abandoned(rwq: Rwq, raw: redis.Redis) -> None:
    raw.rpush("broken:processing", "a")
    (record,) = rwq("queues", "broken", "-o", "json").json
    assert (record["processing"], record["abandoned"], record["buried"]) == (1, 0, 1)


def test_abandoned_items_are_null_for_a_user_who_may_run_no_scripts(
    rwq: Rwq, raw: redis.Redis
) -> None:
    raw.execute_command("ACL", "SETUSER", "default", "-@scripting")
    try:
        (record,) = rwq("queues", "mail:out", "-o", "json").json
    finally:
        raw.execute_command("ACL", "SETUSER", "default", "+@all")
    assert (record["processing"], record["abandoned"]) == (3, None)


def test_wide_has_every_count_that_is_known_at_any_width(rwq: Rwq) -> None:
    assert rwq("queues", "mail:*", "-o", "wide", variables={"COLUMNS": "40"}).lines == [
        "QUEUE     WAITING  PROCESSING  ABANDONED  DELAYED  BURIED",
        "─────────────────────────────────────────────────────────",
        "mail:in         2           0          0        0       0",
        "mail:out        0           3          2        0       0",
    ]


def test_the_headings_of_wide_counts_are_words(rwq: Rwq) -> None:
    (header, *_) = rwq("stats", "-q", "mail:*", "-o", "wide").lines
    assert {"NEXT", "SMALLEST"} < set(header.split())
    assert not {"SECONDS", "MS", "BYTES"} & set(header.split())
    record = rwq("stats", "-q", "mail:*", "--fields", "oldest_waiting_seconds", "-o", "csv").lines
    assert record[0] == "oldest_waiting_seconds"
