"""Paths into JSON data as columns, `--by`, and `--sort` over all that match."""

import json

import pytest

from tests.conftest import Foreign
from tests.driver import Rwq

DATA = {
    b"a": b'{"kind": "img", "n": 1.10, "tags": ["x", 1]}',
    b"b": b'{"kind": "img", "n": 12345678901234567890}',
    b"c": rb'{"kind": "3", "n": null, "odd": "\ud83d"}',
    b"d": b'{"kind": 3}',
    b"e": b"not JSON",
}


@pytest.fixture(autouse=True)
def _five(foreign: Foreign) -> None:
    foreign.waiting(*DATA)
    foreign.raw.mset({b"jobs:item:" + item_id: data for item_id, data in DATA.items()})


class TestPaths:
    def test_plain_lines_have_the_value(self, rwq: Rwq) -> None:
        text = rwq("ls", "--fields", "id,.kind,.n,.tags,.tags[0]").text
        assert text.splitlines() == [
            'a\timg\t1.10\t["x", 1]\tx',
            "b\timg\t12345678901234567890\t\t",
            "c\t3\t\t\t",
            "d\t3\t\t\t",
            "e\t\t\t\t",
        ]

    def test_json_has_it_with_every_digit(self, rwq: Rwq) -> None:
        lines = rwq("ls", "--fields", ".n,.tags", "-n", "2", "-o", "jsonl").text.splitlines()
        assert lines[0] == '{".n": 1.10, ".tags": ["x", 1]}'
        assert json.loads(lines[1]) == {".n": 12345678901234567890, ".tags": None}

    def test_it_is_an_order_too(self, rwq: Rwq) -> None:
        assert rwq("ls", "--sort", ".n", "--reverse", "-o", "ids").text.split()[:2] == ["b", "a"]


class TestBy:
    def test_values_are_counted_most_first(self, rwq: Rwq) -> None:
        assert rwq("ls", "--by", ".kind").text == "img\t2\n3\t1\n3\t1\n\t1\n"
        assert rwq("ls", "--by", ".kind", "-o", "json", "-n", "3").json == [
            {".kind": "img", "count": 2},
            {".kind": "3", "count": 1},
            {".kind": 3, "count": 1},
        ]


def test_all_that_match_are_sorted_and_then_limited(rwq: Rwq) -> None:
    assert rwq("ls", "--sort", "bytes", "-n", "1", "-o", "ids").text == "e\n"
    assert rwq("ls", "--sort", "id", "--reverse", "-n", "1", "--offset", "1").text[0] == "d"
