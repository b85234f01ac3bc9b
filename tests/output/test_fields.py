"""`--fields`, `--sort`, `--reverse` and `-o wide`, in every format."""

import json

import pytest

from tests.conftest import Foreign
from tests.driver import Rwq

pytestmark = pytest.mark.usefixtures("slept_s")


@pytest.fixture
def three(foreign: Foreign) -> Foreign:
    """Waiting items of 10, 300 and 9 bytes, next first; and a leased one."""
    foreign.waiting(b"b1", b"a", b"c")
    foreign.raw.set("jobs:item:a", b"x" * 300)
    foreign.leased(b"l1", holder=b"worker-7", ttl_ms=None)
    return foreign


@pytest.mark.usefixtures("three")
@pytest.mark.needs("no-touch")
class TestFields:
    def test_plain_lines_have_them_in_this_order(self, rwq: Rwq) -> None:
        assert rwq("ls", "--fields", "state,id,bytes").text == (
            "waiting\tb1\t10\nwaiting\ta\t300\nwaiting\tc\t9\n"
        )

    def test_a_described_record_is_a_line_for_scripts(self, rwq: Rwq) -> None:
        assert rwq("show", "a", "--fields", "state,bytes").text == "waiting\t300\n"
        assert rwq("stats", "--fields", "waiting,queue").text == "3\tjobs\n"
        assert rwq("show", "a", "--fields", "state", "-o", "json").json == {"state": "waiting"}

    def test_the_data_is_read_if_it_is_chosen(self, rwq: Rwq, three: Foreign) -> None:
        three.raw.set("jobs:item:b1", b"\xff\t")
        assert rwq("ls", "-n", "2", "--fields", "id,data").text == f"b1\t\\xff\\t\na\t{'x' * 300}\n"
        (record,) = rwq("ls", "-n", "1", "--fields", "data_b64", "-o", "json").json
        assert record == {"data_b64": "/wk="}


@pytest.mark.usefixtures("three")
@pytest.mark.needs("no-touch")
class TestOrder:
    @pytest.mark.parametrize("output", ["ids", "plain", "table", "jsonl"])
    @pytest.mark.parametrize(
        ("words", "ids"),
        {
            "--sort bytes": "c b1 a",
            "--sort bytes --reverse": "a b1 c",
            "--sort id": "a b1 c",
            "--reverse": "c a b1",
            "--sort bytes -n 2": "c b1",
            "--sort position --reverse": "c a b1",
        }.items(),
    )
    def test_what_was_read_is_sorted(self, rwq: Rwq, output: str, words: str, ids: str) -> None:
        result = rwq("ls", *words.split(), "-o", output)
        if output == "jsonl":
            assert [record["id"] for record in result.jsonl] == ids.split()
        else:
            lines = result.lines[2 if output == "table" else 0 :]
            column = 1 if output == "table" else 0
            assert [line.split()[column] for line in lines] == ids.split()

    def test_records_without_the_field_come_last(self, rwq: Rwq, three: Foreign) -> None:
        three.abandoned(b"x1")
        line = ("ls", "processing", "--sort", "lease_holder", "-o", "ids")
        assert [rwq(*line).text, rwq(*line, "--reverse").text] == ["l1\nx1\n"] * 2


@pytest.mark.usefixtures("three")
@pytest.mark.needs("no-touch")
def test_it_has_every_column_at_any_width(rwq: Rwq, three: Foreign) -> None:
    three.raw.set("jobs:item:a", b"y" * 150)
    code, seen = rwq.on_screen("ls", "-o", "wide", "--color", "never", columns=40)
    header, _, *rows = seen.decode().splitlines()
    assert code == 0
    titles = "QUEUE # ID STATE HOLDER TIME LEFT DUE BURIED REASON RETURNS AGE SIZE DATA"
    assert header.split() == titles.split()
    assert rows[1].endswith("y" * 150)
    assert "3 shown of 3 waiting in jobs" in rows[-1]


@pytest.mark.usefixtures("three")
@pytest.mark.needs("no-touch")
def test_one_record_is_indented_on_a_terminal(rwq: Rwq) -> None:
    seen = rwq.on_screen("show", "a", "-o", "json")[1].decode()
    assert seen.startswith('{\n  "queue": "jobs",\n')
    piped = rwq("show", "a", "-o", "json")
    assert {**json.loads(seen), "idle_seconds": 0} == {**piped.json, "idle_seconds": 0}
    assert piped.text.count("\n") == 1
