"""`rwq queues`: the queues of a server, found by their keys."""

import pytest
import redis

from tests.conftest import Foreign
from tests.driver import Rwq


@pytest.fixture(autouse=True)
def filled(raw: redis.Redis) -> None:
    Foreign(raw, b"mail:in").waiting(b"a", b"b")
    Foreign(raw, b"mail:out").leased(b"a")
    Foreign(raw, b"later").delayed(b"a", 9_999_999_999_999)
    Foreign(raw, b"broken").buried(b"a")
    raw.lpush("other:list", "x")
    raw.set("just:queue:string", "x")
    raw.set("str:queue", "x")
    raw.lpush(":queue", "x")


def test_queues_are_sorted_and_counted(rwq: Rwq) -> None:
    result = rwq("queues", "-o", "json")
    counts = ("waiting", "processing", "delayed", "buried")
    assert [[record["queue"], *(record[name] for name in counts)] for record in result.json] == [
        ["broken", 0, 0, 0, 1],
        ["later", 0, 0, 1, 0],
        ["mail:in", 2, 0, 0, 0],
        ["mail:out", 0, 1, 0, 0],
    ]
    assert (result.code, result.notes) == (0, "")


def test_no_queue_has_to_be_named(rwq: Rwq) -> None:
    assert rwq("queues", "-o", "ids", variables={"RWQ_QUEUE": ""}).code == 0


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
        "broken\t0\t0\t0\t1\nlater\t0\t0\t1\t0\nmail:in\t2\t0\t0\t0\nmail:out\t0\t1\t0\t0\n",
        "",
    )


def test_the_table_and_its_footer(rwq: Rwq) -> None:
    assert rwq("queues", "-o", "table").lines == [
        "QUEUE     WAITING  PROCESSING  DELAYED  BURIED",
        "──────────────────────────────────────────────",
        "broken          0           0        0       1",
        "later           0           0        1       0",
        "mail:in         2           0        0       0",
        "mail:out        0           1        0       0",
    ]


def test_no_match_is_an_empty_list(rwq: Rwq) -> None:
    assert rwq("queues", "x*", "-o", "table").as_tuple() == (0, "No such queues.\n", "")
