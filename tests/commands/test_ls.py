"""`rwq ls`: which items, in which order, how many, and that looking changes nothing."""

import pytest

from rwq_cli.output.options import OutputFormat
from tests.conftest import Foreign
from tests.driver import Rwq
from tests.support import snapshot


@pytest.fixture
def five(foreign: Foreign) -> Foreign:
    """w1 to w5 waiting, the first next."""
    foreign.waiting(*(b"w%d" % number for number in range(1, 6)))
    return foreign


def ids(rwq: Rwq, *words: str) -> list[str]:
    result = rwq("ls", *words, "-o", "ids")
    assert (result.code, result.notes) == (0, "")
    return result.text.split()


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("", "w1 w2 w3 w4 w5"),
        ("-n 2", "w1 w2"),
        ("--limit 2 --offset 2", "w3 w4"),
        ("--offset 9", ""),
        ("--tail -n 2", "w5 w4"),
        ("--tail -n 2 --offset 1", "w4 w3"),
    ],
)
def test_a_page_and_its_positions(rwq: Rwq, words: str, page: str) -> None:
    assert ids(rwq, *words.split()) == page.split()
    records = rwq("ls", *words.split(), "-o", "json").json
    assert [record["position"] for record in records] == [int(i[1]) - 1 for i in page.split()]


@pytest.mark.parametrize(
    ("words", "count"),
    [("", 50), ("-n 0", 12_505), ("-n 12000 --offset 3", 12_000), ("-n 12503", 12_503)],
)
def test_as_many_as_there_are_or_are_asked_for(
    rwq: Rwq, five: Foreign, words: str, count: int
) -> None:
    five.waiting(*(b"x%d" % number for number in range(12_500)))
    assert len(ids(rwq, *words.split())) == count


@pytest.mark.parametrize(
    ("which", "expected"),
    [
        ("waiting", "w1 w2 w3 w4 w5"),
        ("processing", "a1 l1 h1 g1"),
        ("leased", "l1"),
        ("held", "h1"),
        ("abandoned", "a1"),
        ("orphaned", "orphan"),
        ("delayed", "due d1"),
        ("due", "due"),
        ("buried", "b1"),
        ("all", "w1 w2 w3 w4 w5 a1 l1 h1 g1 due d1 b1"),
        ("all --deep", "w1 w2 w3 w4 w5 a1 l1 h1 g1 due d1 b1 orphan"),
        ("all --state ghost --state abandoned", "a1 g1"),
        ("processing --state leased", "l1"),
    ],
)
def test_a_source_selects_a_list(rwq: Rwq, five: Foreign, which: str, expected: str) -> None:
    five.abandoned(b"a1")
    five.leased(b"l1")
    five.leased(b"h1", ttl_ms=None)
    five.raw.lpush(five.keys.processing, b"g1")
    five.data(b"orphan")
    five.delayed(b"d1", 9_999_999_999_999)
    five.delayed(b"due", 1)
    five.buried(b"b1", b"it broke")
    assert ids(rwq, *which.split(), "-Q") == expected.split()
    assert ids(rwq, *which.split(), "-Q", "--offset", "1") == expected.split()[1:]


def test_a_guard_is_not_shown_as_a_lease(rwq: Rwq, foreign: Foreign) -> None:
    """In tables; for programs everything stays as the keys say it."""
    foreign.waiting(b"waiting")
    foreign.leased(b"leased", ttl_ms=7_190_000)
    foreign.buried(b"buried", b"it broke")
    rwq("add", "--id", "delayed", "--delay", "2h", "data of delayed")
    rows = {line.split()[0]: line for line in rwq("ls", "all", "-o", "table").lines}
    assert rows["buried"].split()[:4] == ["buried", "buried", "-", "-"]
    assert rows["delayed"].split()[:5] == ["delayed", "delayed", "-", "in", "1h59m"]
    assert rows["waiting"].split()[:4] == ["waiting", "waiting", "-", "-"]
    assert rows["leased"].split()[:4] == ["leased", "leased", "them", "1h59m"]
    records = {record["id"]: record for record in rwq("ls", "all", "-o", "json").json}
    assert records["buried"]["lease"] == {"holder": "rwq-buried:it broke", "ttl_ms": None}
    assert records["delayed"]["lease"]["holder"].startswith("rwq-delayed:")


@pytest.mark.usefixtures("up_for_days")
@pytest.mark.needs("no-touch")
def test_the_table_and_its_footer(rwq: Rwq, foreign: Foreign) -> None:
    rwq("add", "--id-from", "line", "resize cat.png", "x" * 2000)
    foreign.unused_for(b"resize cat.png", 30 * 3600 + 60)
    rwq("add", "--id", "third", "tab\tand [red]markup[/red]")
    result = rwq("ls", "-n", "1", "-o", "table")
    assert result.lines == snapshot(
        [
            "#  ID               AGE  SIZE  DATA",
            "─────────────────────────────────────────────",
            "0  resize cat.png  1d6h  14 B  resize cat.png",
        ]
    )
    assert (result.code, result.notes) == (0, "1 shown of 3 waiting in jobs\n")


def test_a_table_shows_what_was_returned_often(rwq: Rwq, foreign: Foreign) -> None:
    foreign.abandoned(b"a", b"b")
    foreign.raw.hset(foreign.keys.returns, "a", 12)
    header, _, first, second = rwq("ls", "abandoned", "-o", "table").lines[:4]
    assert (header.split()[2], first.split()[2], second.split()[2]) == ("RETURNS", "12", "-")
    assert [line.split("\t")[0] for line in rwq("ls", "abandoned").text.splitlines()] == ["a", "b"]
    foreign.raw.delete(foreign.keys.returns)
    assert "RETURNS" not in rwq("ls", "abandoned", "-o", "table").text


@pytest.mark.needs("no-touch")
@pytest.mark.parametrize("output", OutputFormat)
def test_all_says_that_orphans_are_not_looked_for(
    rwq: Rwq, foreign: Foreign, output: OutputFormat
) -> None:
    foreign.waiting(b"w")
    foreign.data(b"o")
    footer = "1 shown of 1 in jobs\n" if output.is_table else ""
    # Other commands read IDs.
    note = "" if output is OutputFormat.IDS else "--deep also shows items in no list\n"
    assert rwq("ls", "all", "-o", output).notes == footer + note
    assert rwq("ls", "all", "-Q", "-o", output).notes == ""
    others = [rwq(*line.split(), "-o", output).notes for line in ("ls all --deep", "ls")]
    assert [notes for notes in others if "--deep" in notes] == []


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize(
    ("words", "is_noted"), [("", True), ("--data", False), ("--fields id", False)]
)
def test_people_are_told_that_data_is_not_read(rwq: Rwq, words: str, is_noted: bool) -> None:
    _, screen = rwq.on_screen("ls", "-o", "json", *words.split())
    assert (b"data is null; --data reads it" in screen) == is_noted
