"""`rwq ls`: which items, in which order, how many, and that looking changes nothing."""

import pytest
import redis

from rwq_cli.output.options import OutputFormat
from tests.conftest import Foreign, contents
from tests.driver import Rwq


@pytest.fixture
def five(foreign: Foreign) -> Foreign:
    """w1 to w5 waiting, the first next."""
    foreign.waiting(*(b"w%d" % number for number in range(1, 6)))
    return foreign


def ids(rwq: Rwq, *words: str) -> list[str]:
    result = rwq("ls", *words, "-o", "ids")
    assert (result.code, result.notes) == (0, "")
    return result.text.split()


def positions(rwq: Rwq, *words: str) -> list[int | None]:
    return [record["position"] for record in rwq("ls", *words, "-o", "json").json]


@pytest.mark.usefixtures("five")
class TestPaging:
    def test_the_next_item_comes_first(self, rwq: Rwq) -> None:
        assert ids(rwq) == ["w1", "w2", "w3", "w4", "w5"]
        assert positions(rwq) == [0, 1, 2, 3, 4]

    def test_n_limits_the_items(self, rwq: Rwq) -> None:
        assert ids(rwq, "-n", "2") == ["w1", "w2"]
        assert ids(rwq, "--limit", "9") == ["w1", "w2", "w3", "w4", "w5"]

    def test_offset_skips_the_first_items(self, rwq: Rwq) -> None:
        assert ids(rwq, "-n", "2", "--offset", "2") == ["w3", "w4"]
        assert positions(rwq, "-n", "2", "--offset", "2") == [2, 3]
        assert ids(rwq, "--offset", "4") == ["w5"]
        assert ids(rwq, "--offset", "9") == []

    def test_tail_shows_the_newest_items(self, rwq: Rwq) -> None:
        assert ids(rwq, "--tail", "-n", "2") == ["w5", "w4"]
        assert positions(rwq, "--tail", "-n", "2") == [4, 3]
        assert ids(rwq, "--tail", "-n", "2", "--offset", "1") == ["w4", "w3"]
        assert positions(rwq, "--tail", "-n", "2", "--offset", "1") == [3, 2]

    def test_n_0_shows_all_items(self, rwq: Rwq, five: Foreign) -> None:
        five.waiting(*(b"x%04d" % number for number in range(2500)))
        assert len(ids(rwq)) == 50
        everything = ids(rwq, "-n", "0")
        assert everything == [f"w{n}" for n in range(1, 6)] + [f"x{n:04}" for n in range(2500)]
        assert ids(rwq, "-n", "0", "--tail") == everything[::-1]
        assert positions(rwq, "-n", "3", "--offset", "2000") == [2000, 2001, 2002]


class TestSources:
    @pytest.fixture(autouse=True)
    def filled(self, five: Foreign) -> None:
        five.abandoned(b"a1")
        five.leased(b"l1")
        five.leased(b"h1", ttl_ms=None)
        five.raw.lpush(five.keys.processing, b"g1")
        five.data(b"orphan")

    @pytest.mark.parametrize(
        ("which", "expected"),
        [
            ("waiting", "w1 w2 w3 w4 w5"),
            ("processing", "a1 l1 h1 g1"),
            ("leased", "l1"),
            ("held", "h1"),
            ("abandoned", "a1"),
            ("orphaned", "orphan"),
            ("all", "w1 w2 w3 w4 w5 a1 l1 h1 g1"),
        ],
    )
    def test_a_source_selects_a_list(self, rwq: Rwq, which: str, expected: str) -> None:
        assert ids(rwq, which) == expected.split()
        assert ids(rwq, which, "-n", "3") == expected.split()[:3]
        assert ids(rwq, which, "--offset", "1") == expected.split()[1:]

    def test_the_longest_leased_item_comes_first(self, rwq: Rwq) -> None:
        assert ids(rwq, "processing") == ["a1", "l1", "h1", "g1"]
        assert ids(rwq, "processing", "--tail") == ["g1", "h1", "l1", "a1"]

    def test_all_lists_each_item_with_its_state(self, rwq: Rwq) -> None:
        records = rwq("ls", "all", "-o", "json").json
        assert [(record["id"], record["state"]) for record in records[4:]] == [
            ("w5", "waiting"),
            ("a1", "abandoned"),
            ("l1", "leased"),
            ("h1", "held"),
            ("g1", "ghost"),
        ]
        assert [record["position"] for record in records[4:]] == [4, None, None, None, None]
        leases = [record["lease"] for record in records[4:]]
        assert [lease and lease["holder"] for lease in leases] == [None, None, "them", "them", None]
        assert leases[3]["ttl_ms"] is None

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (("--state", "leased"), "l1"),
            (("all", "--state", "held"), "h1"),
            (("all", "--state", "ghost", "--state", "abandoned"), "a1 g1"),
            (("processing", "--state", "leased"), "l1"),
            (("waiting", "--state", "leased"), ""),
            (("leased", "--state", "abandoned"), ""),
        ],
    )
    def test_state_lists_only_items_in_it(
        self, rwq: Rwq, words: tuple[str, ...], expected: str
    ) -> None:
        assert ids(rwq, *words) == expected.split()

    def test_a_duplicate_is_listed_twice(self, rwq: Rwq, five: Foreign) -> None:
        five.raw.lpush(five.keys.main, b"w1")
        assert rwq("show", "w1", "-o", "json").json["state"] == "duplicated"
        assert ids(rwq) == ["w1", "w2", "w3", "w4", "w5", "w1"]

    @pytest.mark.parametrize("which", ["delayed", "buried"])
    def test_delayed_and_buried_items_are_listed(self, rwq: Rwq, five: Foreign, which: str) -> None:
        five.delayed(b"delayed", 9_999_999_999_999)
        five.buried(b"buried", b"it broke")
        (record,) = rwq("ls", which, "-o", "json").json
        assert (record["id"], record["state"]) == (which, which)
        five.delayed(b"due", 1)
        assert ids(rwq, "due") == ["due"]

    def test_a_guard_is_not_shown_as_a_lease(self, rwq: Rwq, foreign: Foreign) -> None:
        """In tables; for programs everything stays as the keys say it."""
        foreign.raw.flushall()
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


class TestSelection:
    @pytest.fixture(autouse=True)
    def filled(self, rwq: Rwq) -> None:
        rwq("add", "--id-from", "field:id", '{"id": "a1", "user": 42}', '{"id": "a2", "user": 7}')
        rwq("add", "--id", "b1", '{"user": 42}\nsecond line')
        rwq("add", "--id", "b2", "--format", "raw", stdin=b"\xff\x00\x1b")

    @pytest.mark.parametrize(
        ("regex", "expected"),
        [
            ('"user": *42', "a1 b1"),
            ("^second", ""),
            ("(?m)^second", "b1"),
            ("42$", ""),
            ("\\xff", "b2"),
            ("USER", ""),
            ("(?i)USER", "a1 a2 b1"),
            ("", "a1 a2 b1 b2"),
        ],
    )
    @pytest.mark.needs("no-touch")
    def test_match_selects_by_data(self, rwq: Rwq, regex: str, expected: str) -> None:
        assert ids(rwq, "--match", regex) == expected.split()

    @pytest.mark.needs("no-touch")
    def test_match_looks_beyond_the_preview(self, rwq: Rwq) -> None:
        rwq("add", "--id", "long", "x" * 10_000 + "needle")
        assert ids(rwq, "--match", "needle") == ["long"]

    def test_match_does_not_print_the_data(self, rwq: Rwq) -> None:
        (record,) = rwq("ls", "--match", "second", "-o", "json").json
        assert record["data"] is None
        (record,) = rwq("ls", "--match", "second", "--data", "-o", "json").json
        assert record["data"] == '{"user": 42}\nsecond line'

    @pytest.mark.parametrize(
        ("glob", "expected"),
        [("a*", "a1 a2"), ("?2", "a2 b2"), ("[ab]1", "a1 b1"), ("a", ""), ("*", "a1 a2 b1 b2")],
    )
    def test_id_glob_selects_by_id(self, rwq: Rwq, glob: str, expected: str) -> None:
        assert ids(rwq, "--id-glob", glob) == expected.split()

    def test_reason_holder_and_returns_select(self, rwq: Rwq, foreign: Foreign) -> None:
        foreign.buried(b"poison", b"exit code 3")
        foreign.buried(b"paused", b"paused")
        foreign.leased(b"leased", holder=b"worker-7")
        foreign.raw.hset(foreign.keys.returns, mapping={"poison": 4, "a1": 1})
        assert ids(rwq, "buried", "--reason", "paused") == ["paused"]
        assert ids(rwq, "buried", "--reason", "exit code *") == ["poison"]
        assert ids(rwq, "processing", "--holder", "worker-*") == ["leased"]
        assert ids(rwq, "all", "--returns", ">=2", "-Q") == ["poison"]
        assert ids(rwq, "waiting", "--returns", "0") == ["a2", "b1", "b2"]
        # Without a state, what they look at says where to look.
        assert ids(rwq, "--reason", "exit code *") == ["poison"]
        assert ids(rwq, "--holder", "worker-*") == ["leased"]
        assert ids(rwq, "--returns", ">=1", "-Q") == ["a1", "poison"]
        assert ids(rwq, "--reason", "*", "--state", "waiting") == []
        result = rwq("ls", "--returns", "often")
        assert (result.code, "'often' is not a comparison" in result.notes) == (2, True)

    def test_older_than_selects_by_idle_time(self, rwq: Rwq) -> None:
        assert ids(rwq, "--older-than", "0") == ["a1", "a2", "b1", "b2"]
        assert ids(rwq, "--older-than", "1h") == []

    @pytest.mark.needs("no-touch")
    def test_all_options_must_match(self, rwq: Rwq) -> None:
        assert ids(rwq, "--match", "42", "--id-glob", "b*") == ["b1"]
        assert ids(rwq, "--match", "user", "-n", "1", "--offset", "1") == ["a2"]


class TestTable:
    @pytest.mark.needs("no-touch")
    def test_the_table_and_its_footer(self, rwq: Rwq, foreign: Foreign) -> None:
        rwq("add", "--id-from", "line", "resize cat.png", "x" * 2000)
        foreign.unused_for(b"resize cat.png", 30 * 3600 + 60)
        rwq("add", "--id", "third", "tab\tand [red]markup[/red]")
        result = rwq("ls", "-n", "1", "-o", "table")
        assert result.lines == [
            "#  ID              LAST USE  SIZE  DATA",
            "─────────────────────────────────────────────────",
            "0  resize cat.png  1d6h ago  14 B  resize cat.png",
        ]
        assert (result.code, result.notes) == (0, "1 shown of 3 waiting in jobs\n")

    def test_lines_end_without_spaces(self, rwq: Rwq) -> None:
        rwq("add", "--id", "a", "short")
        rwq("add", "--id", "b", "a good deal longer")
        for line in rwq("ls", "-o", "table").text.splitlines():
            assert line == line.rstrip()


@pytest.mark.usefixtures("slept_s")
def test_ls_changes_nothing(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"w1", b"w2")
    foreign.leased(b"l1", ttl_ms=None)
    foreign.abandoned(b"a1")
    foreign.delayed(b"d1", 1)
    foreign.buried(b"b1")
    raw = foreign.raw
    before = contents(raw)
    for line in (
        *("ls", "ls all --data", "ls --match x", "ls --older-than 0", "leases --data", "stats"),
        *("ls --state orphaned --state duplicated --data", "complete --all --dry-run"),
        *("stats --deep", "show w1 l1 a1 d1 b1 --data", "queues", "lease --dry-run"),
    ):
        for output in ("json", "table", "data", "ids"):
            rwq(*line.split(), "-o", output)
    assert contents(raw) == before


def test_ls_resets_no_idle_time(rwq: Rwq, foreign: Foreign) -> None:
    raw = foreign.raw
    foreign.waiting(b"w1")
    foreign.leased(b"l1")
    try:
        raw.execute_command("CLIENT", "NO-TOUCH", "ON")
    except redis.ResponseError:
        pytest.skip("this server has no CLIENT NO-TOUCH")
    keys = sorted(raw.keys())
    for key in keys:
        raw.restore(key, max(0, raw.pttl(key)), raw.dump(key), replace=True, idletime=1)
    assert all(raw.object("idletime", key) >= 1 for key in keys)
    for line in ("ls all --data", "leases", "stats --deep", "show w1 l1 --data", "ls --match x"):
        rwq(*line.split())
    assert all(raw.object("idletime", key) >= 1 for key in keys)


def test_a_page_of_a_long_list_needs_no_more_calls(rwq: Rwq, raw: redis.Redis) -> None:
    """Of a long queue no more is read than is shown."""

    def sent_bytes() -> int:
        return int(raw.info("stats")["total_net_output_bytes"])

    def cost(count: int) -> int:
        raw.flushall()
        ids = [b"%07d" % number for number in range(count)]
        raw.lpush("jobs:queue", *ids)
        raw.mset({b"jobs:item:" + item_id: b"x" for item_id in ids})
        rwq("ls", "-n", "10", "-o", "json")
        before = sent_bytes()
        rwq("ls", "-n", "10", "-o", "json")
        rwq("ls", "-n", "10", "--offset", str(count - 10), "-o", "json")
        rwq("ls", "-n", "10", "--tail", "-o", "json")
        return sent_bytes() - before

    assert cost(100_000) < cost(20) + 3000


def test_a_table_shows_what_was_returned_again_and_again(rwq: Rwq, foreign: Foreign) -> None:
    foreign.abandoned(b"a", b"b")
    foreign.raw.hset(foreign.keys.returns, "a", 12)
    header, _, first, second = rwq("ls", "abandoned", "-o", "table").lines[:4]
    assert (header.split()[2], first.split()[2], second.split()[2]) == ("RETURNS", "12", "-")
    assert [line.split("\t")[0] for line in rwq("ls", "abandoned").text.splitlines()] == ["a", "b"]
    foreign.raw.delete(foreign.keys.returns)
    assert "RETURNS" not in rwq("ls", "abandoned", "-o", "table").text


class TestDeep:
    """`ls all` shows what is in the lists; `--deep` also what is in none."""

    @pytest.fixture(autouse=True)
    def filled(self, foreign: Foreign) -> None:
        foreign.waiting(b"w")
        foreign.data(b"o")

    @pytest.mark.needs("no-touch")
    def test_all_says_that_items_in_no_list_are_not_looked_for(self, rwq: Rwq) -> None:
        result = rwq("ls", "all", "-o", "table")
        assert [line.split()[0] for line in result.lines[2:]] == ["w"]
        assert result.notes == "1 shown of 1 in jobs\n--deep also shows items in no list\n"
        for output in OutputFormat:
            said = rwq("ls", "all", "-o", output).notes
            # Other commands read IDs.
            has_note = output is not OutputFormat.IDS
            assert said.endswith("--deep also shows items in no list\n") == has_note, output
            assert rwq("ls", "all", "-Q", "-o", output).notes == ""
            assert "--deep" not in rwq("ls", "all", "--deep", "-o", output).notes
        assert "--deep" not in rwq("ls", "-o", "table").notes

    @pytest.mark.needs("no-touch")
    @pytest.mark.parametrize("queue", ["jobs", "none"])
    def test_all_says_so_even_if_there_is_no_list(
        self, rwq: Rwq, foreign: Foreign, queue: str
    ) -> None:
        foreign.raw.delete("jobs:queue", "jobs:item:w")
        said = (
            f"rwq: {queue}: there is no such queue, or it is empty; rwq queues lists the queues\n"
            "--deep also shows items in no list\n"
        )
        words = ("ls", "all", "-q", queue)
        assert rwq(*words).as_tuple() == (0, "", said)
        assert rwq(*words, "-o", "json").as_tuple() == (0, "[]\n", said)
        assert rwq(*words, "-o", "table").as_tuple() == (0, f"No items in {queue}.\n", said)
        assert rwq(*words, "-o", "table", "-Q").as_tuple() == (0, "", "")

    @pytest.mark.needs("no-touch")
    def test_deep_shows_them(self, rwq: Rwq) -> None:
        result = rwq("ls", "all", "--deep", "-o", "json")
        assert [(record["id"], record["state"]) for record in result.json] == [
            ("w", "waiting"),
            ("o", "orphaned"),
        ]
        assert rwq("ls", "all", "--deep", "-o", "table").notes == "2 shown of jobs\n"

    @pytest.mark.parametrize("words", [(), ("buried",)])
    def test_it_is_for_all(self, rwq: Rwq, words: tuple[str, ...]) -> None:
        result = rwq("ls", *words, "--deep")
        assert (result.code, result.notes) == (
            2,
            "rwq: error: --deep needs all; rwq ls all --deep\n",
        )
