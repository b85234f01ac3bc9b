"""One grammar for choosing items: the same for every verb, and the same as that of `ls`."""

import json

import pytest

from rwq_cli.core.model import State
from tests.conftest import Foreign, contents, until_alone
from tests.driver import TIMEOUT_S, Rwq, until

pytestmark = pytest.mark.usefixtures("slept_s")

VERBS = ["release", "complete", "touch", "bury", "kick"]
NOTHING_CHOSEN = (
    "rwq: error: no items chosen; give IDs, or - to read them from stdin; or choose by "
    "{state}--match, --where, --id-glob, --older-than, {more}--returns or -n; or use --all\n"
)
# Its items are in one state.
WITHOUT_STATE = "kick"
NO_TERMINAL = "rwq: error: this needs confirmation, and there is no terminal to ask on; use --yes\n"


@pytest.fixture
def filled(foreign: Foreign) -> Foreign:
    """Two waiting, two abandoned, one leased by another, one held, one orphan, one ghost."""
    foreign.waiting(b"w1", b"w2")
    foreign.abandoned(b"a1", b"a2")
    foreign.leased(b"l1")
    foreign.leased(b"h1", ttl_ms=None)
    foreign.data(b"o1")
    foreign.raw.lpush(foreign.keys.processing, b"g1")
    return foreign


def chosen(rwq: Rwq, *words: str) -> list[str]:
    """The IDs that a verb deals with, whatever it says of them."""
    result = rwq(*words, "-o", "jsonl", "--dry-run")
    assert result.code in (0, 1, 3), result.notes
    return [record["id"] for record in result.jsonl]


def state_of(verb: str) -> str:
    """A state of items that the verb takes."""
    return "buried" if verb == "kick" else "leased"


@pytest.mark.parametrize("verb", VERBS)
class TestUsage:
    def test_without_ids_or_options_it_is_an_error(
        self, rwq: Rwq, filled: Foreign, verb: str
    ) -> None:
        before = contents(filled.raw)
        own = {"bury": ("--holder, ",), "kick": ("--reason, ",), "touch": ("--holder, ",)}
        said = NOTHING_CHOSEN.format(
            state="" if verb == WITHOUT_STATE else "--state, ",
            more="".join(own.get(verb, ("--holder, ", "--reason, "))),
        )
        for words in ((), ("-n", "0"), ("--dry-run",)):
            assert rwq(verb, *words).as_tuple() == (2, "", said)
        assert sorted(contents(filled.raw)) == sorted(before)

    def test_all_excludes_a_state(self, rwq: Rwq, verb: str) -> None:
        if verb == WITHOUT_STATE:
            pytest.skip("it has no --state")
        said = "rwq: error: --all and --state cannot be used together; use one of them\n"
        assert rwq(verb, "--all", "--state", state_of(verb)).as_tuple() == (2, "", said)

    @pytest.mark.parametrize("words", ["--match [", "--older-than soon", "--state nothing"])
    def test_bad_values_are_usage_errors(self, rwq: Rwq, verb: str, words: str) -> None:
        result = rwq(verb, *words.split())
        assert (result.code, result.text, result.notes.count("\n")) == (2, "", 1)

    def test_help_has_the_options_that_select(self, rwq: Rwq, verb: str) -> None:
        text = rwq(verb, "--help").text
        for option in (
            *("--match", "--where", "--id-glob", "--older-than", "-n, --limit", "--all"),
            *(["--state"] if verb != WITHOUT_STATE else []),
        ):
            assert f"\n  {option} " in text
        assert "\n  [ID...] " in text


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("touch w1 --state leased", "--state"),
        ("release - --match x", "--match"),
        ("complete w1 w2 --match= --id-glob *", "--match"),
        ("bury - --where a=1", "--where"),
        ("kick w1 w2 --id-glob *", "--id-glob"),
        ("complete w1 --older-than 1h", "--older-than"),
        ("complete - -n 1", "-n"),
        ("release w1 -n 0", "-n"),
        ("touch - --all", "--all"),
    ],
)
def test_ids_exclude_options_that_select(rwq: Rwq, line: str, option: str) -> None:
    assert rwq(*line.split(), stdin=b"w1\n").as_tuple() == (
        2,
        "",
        f"rwq: error: IDs and {option} cannot be used together; give IDs, or choose items by "
        "options\n",
    )


def test_a_state_that_a_verb_does_not_apply_to_is_an_error(rwq: Rwq) -> None:
    assert rwq("touch", "--state", "waiting").as_tuple() == (
        2,
        "",
        "rwq: error: this command does not apply to waiting items; --state is one of leased, held, "
        "unlisted\n",
    )


@pytest.mark.usefixtures("filled")
class TestSelection:
    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("complete -n 1", "w1"),
            ("complete --id-glob ?1", "w1"),
            ("complete --match of", "w1 w2"),
            ("complete --state abandoned", "a1 a2"),
            ("complete --state abandoned --id-glob *2", "a2"),
            ("complete --state leased --state held", "l1 h1"),
            ("complete --all", "w1 w2 a1 a2 l1 h1 o1"),
            ("complete --all --id-glob ?1", "w1 a1 l1 h1 o1"),
            ("complete --all -n 3", "w1 w2 a1"),
            ("complete --older-than 1h", ""),
            ("complete --older-than 0 -n 1", "w1"),
            ("complete --state held --state orphaned", "h1 o1"),
            ("release -n 1", "a1"),
            # Those that were looked at twice come last.
            ("release --all", "l1 h1 a1 a2"),
            ("release --match of.a", "a1 a2"),
            ("release --state orphaned", "o1"),
            ("bury --all", "w1 w2 a1 a2"),
            ("bury --match of", "w1 w2 a1 a2"),
            ("bury --state orphaned --state leased", "l1 o1"),
            ("kick --all", ""),
            ("touch --all", "l1 h1"),
            ("touch -n 5", "l1"),
            ("touch --id-glob h*", ""),
            ("touch --state held", "h1"),
        ],
    )
    def test_options_select_these_items(self, rwq: Rwq, line: str, expected: str) -> None:
        assert chosen(rwq, *line.split()) == expected.split()


class TestWhere:
    """Choosing by values in JSON data; what expressions mean is tested in `input/test_where.py`."""

    @pytest.fixture(autouse=True)
    def json_items(self, rwq: Rwq, foreign: Foreign) -> None:
        for item_id, data in {
            "three": '{"tenant": {"id": 3}, "size": 100}',
            "also": '{"tenant": {"id": "3"}, "error": "boom"}',
            "four": '{"tenant": {"id": 4}, "size": 50}',
            "text": "tenant.id=3",
        }.items():
            rwq("add", data, "--id", item_id)
        foreign.raw.lpush("jobs:queue", "ghost")

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            ("--where tenant.id=3", "three also"),
            ("--where tenant.id=3 --where size>=100", "three"),
            ("--where tenant.id=3 --match size", "three"),
            ("--where tenant.id=3 --id-glob a*", "also"),
            ("--where tenant.id=3 -n 1", "three"),
            ("--where !error", "three four"),
            ("--where tenant.id!=3 --state waiting", "four"),
            ("--where tenant.id=5", ""),
        ],
    )
    def test_every_verb_chooses_the_same(self, rwq: Rwq, words: str, expected: str) -> None:
        state = [] if "--state" in words else ["--state", "waiting"]
        for verb in ("complete", "release", "bury", "rm", "mv"):
            more = ("--to", "other") if verb == "mv" else ()
            assert chosen(rwq, verb, *words.split(), *state, *more) == expected.split(), verb
        assert rwq("ls", *words.split(), "-o", "ids").text.split() == expected.split()
        exported = rwq("export", *words.split(), *state, "-o", "ids")
        assert exported.text.split() == expected.split()

    def test_buried_and_leased_items_are_chosen(self, rwq: Rwq) -> None:
        rwq("bury", "--where", "tenant.id=3")
        assert chosen(rwq, "kick", "--where", "size") == ["three"]
        rwq("lease", "--id", "four")
        assert chosen(rwq, "touch", "--where", "size=50") == ["four"]
        assert chosen(rwq, "touch", "--where", "size=51") == []

    def test_an_odd_expression_is_marked(self, rwq: Rwq) -> None:
        words = ("rm", "--where", "size>1", "--where", "tenant.id=>3", "--yes")
        message = "--where, column 11, at '>3': a value cannot begin with this"
        hint = "the operators are = != < <= > >= ~; quote a value that begins with one"
        assert rwq(*words).as_tuple() == (2, "", f"rwq: error: {message}; {hint}\n")
        assert json.loads(rwq(*words, "-o", "json").err) == {
            "error": message,
            "code": "invalid-argument",
            "hint": hint,
        }

    def test_data_json_is_the_data_parsed(self, rwq: Rwq) -> None:
        rwq("add", '{"n": 1.10, "big": 18446744073709551617, "a": 1, "a": 2}', "--id", "odd")
        result = rwq("ls", "--data", "--where", "n", "-o", "jsonl")
        assert (
            b'"data_json": {"n": 1.10, "big": 18446744073709551617, "a": 1, "a": 2}}' in result.out
        )
        (record,) = rwq("ls", "--data", "--match", "^tenant", "-o", "json").json
        assert (record["data"], record["data_json"]) == ("tenant.id=3", None)
        (record,) = rwq("ls", "--id-glob", "four", "-o", "json").json
        assert (record["data"], record["data_json"]) == (None, None)
        record = rwq("show", "four", "--data", "-o", "json").json
        assert record["data_json"] == {"tenant": {"id": 4}, "size": 50}
        (record,) = rwq("lease", "-o", "jsonl").jsonl
        assert record["data_json"] == {"tenant": {"id": 3}, "size": 100}
        (record,) = rwq("leases", "--data", "-o", "jsonl").jsonl
        assert record["data_json"]["size"] == 100


class TestEffect:
    def test_release_returns_abandoned_items(self, rwq: Rwq, filled: Foreign) -> None:
        assert rwq("release", "--state", "abandoned").as_tuple() == (
            0,
            "",
            "released 2\n",
        )
        assert filled.raw.lrange("jobs:queue", 0, -1) == [b"a2", b"a1", b"w2", b"w1"]
        assert filled.raw.lrange("jobs:processing", 0, -1) == [b"g1", b"h1", b"l1"]

    def test_release_leaves_items_leased_by_others(self, rwq: Rwq, filled: Foreign) -> None:
        result = rwq("release", "--all", "-o", "json")
        assert (result.code, result.json["released"], result.json["not_owner"]) == (3, 2, 2)
        assert filled.raw.lrange("jobs:processing", 0, -1) == [b"g1", b"h1", b"l1"]

    def test_release_with_force_returns_all(self, rwq: Rwq, filled: Foreign) -> None:
        assert rwq("release", "--all", "--force", "--yes", "-o", "json").json["released"] == 4
        assert filled.raw.lrange("jobs:processing", 0, -1) == [b"g1"]

    def test_release_returns_an_orphan(self, rwq: Rwq, filled: Foreign) -> None:
        assert rwq("release", "--state", "orphaned", "--front").code == 0
        assert filled.raw.lrange("jobs:queue", 0, -1) == [b"w2", b"w1", b"o1"]

    def test_touch_extends_every_lease(self, rwq: Rwq, filled: Foreign) -> None:
        result = rwq("touch", "--all", "--for", "1h")
        assert result.as_tuple() == (0, "", "touched 2\n")
        assert filled.raw.pttl("jobs:lease:l1") > 3_500_000
        assert filled.raw.pttl("jobs:lease:h1") > 3_500_000

    def test_complete_with_yes_completes_all(self, rwq: Rwq, filled: Foreign) -> None:
        result = rwq("complete", "--all", "--yes", "-o", "json")
        assert (result.code, result.json["completed"]) == (0, 7)
        assert sorted(filled.raw.keys()) == [b"jobs:processing"]
        assert filled.raw.lrange("jobs:processing", 0, -1) == [b"g1"]

    def test_thousands_of_binary_ids_are_completed(self, rwq: Rwq, foreign: Foreign) -> None:
        ids = [bytes((first, second)) for first in range(0, 256, 8) for second in range(100)]
        foreign.waiting(*ids)
        foreign.leased(b"stays")
        result = rwq("complete", "--match", "data of", "--yes", "-o", "json")
        assert (result.code, result.json["completed"]) == (0, 3200)
        assert sorted(foreign.raw.keys()) == [
            *(b"jobs:item:stays", b"jobs:lease:stays", b"jobs:leased_by_session:stays"),
            b"jobs:processing",
        ]

    @pytest.mark.needs("no-touch")
    def test_no_match_changes_nothing(self, rwq: Rwq, filled: Foreign) -> None:
        before = sorted(filled.raw.keys())
        said = "nothing completed\n"
        assert rwq("complete", "--match", "nothing like it").as_tuple() == (0, "", said)
        assert sorted(filled.raw.keys()) == before

    def test_a_dry_run_prints_the_report_of_the_run(self, rwq: Rwq, filled: Foreign) -> None:
        words = ("release", "--all", "--force", "--yes", "-o", "jsonl")
        before = sorted(filled.raw.keys())
        dry = rwq(*words, "--dry-run")
        assert sorted(filled.raw.keys()) == before
        real = rwq(*words)
        assert (dry.code, dry.jsonl) == (real.code, real.jsonl)
        assert dry.notes == f"dry run: would {real.notes.replace('released', 'release')}"


class TestMany:
    COUNT = 8_000

    @pytest.fixture(autouse=True)
    def long(self, foreign: Foreign) -> None:
        ids = [b"%06d" % number for number in range(self.COUNT)]
        foreign.raw.lpush(foreign.keys.main, *ids)
        foreign.raw.mset({foreign.keys.item(item_id): b"x" for item_id in ids})

    def test_a_killed_complete_can_be_run_again(self, rwq: Rwq, foreign: Foreign) -> None:
        raw = foreign.raw
        process = rwq.start("complete", "--state", "waiting", "--yes", "-o", "json")
        until(lambda: raw.llen("jobs:queue") < self.COUNT - 500)
        process.kill()
        process.wait()
        until_alone(raw)
        left = raw.llen("jobs:queue")
        assert 0 < left < self.COUNT
        assert len(raw.keys("jobs:item:*")) == left
        counts = rwq("stats", "--deep", "-o", "json").json
        names = ("waiting", "orphaned", "duplicated", "ghosts", "processing")
        assert [counts[name] for name in names] == [left, 0, 0, 0, 0]
        result = rwq("complete", "--state", "waiting", "--yes", "-o", "json")
        assert (result.code, result.json["completed"]) == (0, left)
        assert raw.keys() == []

    def test_two_concurrent_calls_complete_each_item_once(self, rwq: Rwq, foreign: Foreign) -> None:
        words = ("complete", "--all", "--yes", "-o", "json")
        both = [rwq.start(*words), rwq.start(*words)]
        told = [json.loads(process.communicate(timeout=TIMEOUT_S)[0]) for process in both]
        assert sum(each["completed"] for each in told) == self.COUNT
        assert foreign.raw.keys() == []


class TestLs:
    """What `ls` gained: the states that no list tells, and a state without a place."""

    @pytest.fixture(autouse=True)
    def broken(self, filled: Foreign) -> None:
        filled.data(b"u1")
        filled.lease(b"u1")
        filled.waiting(b"d1")
        filled.raw.lpush(filled.keys.main, b"d1", b"g2")

    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            ("--state orphaned", "o1"),
            ("--state unlisted", "u1"),
            ("--state duplicated", "d1"),
            ("--state ghost", "g2 g1"),
            ("--state held", "h1"),
            ("--state leased", "l1"),
            ("all --state orphaned", "o1"),
            ("--state orphaned --state abandoned", "a1 a2 o1"),
            ("--state orphaned --id-glob x*", ""),
            ("waiting --state orphaned", ""),
            ("processing --state orphaned", ""),
        ],
    )
    def test_states_select_these_items(self, rwq: Rwq, words: str, expected: str) -> None:
        result = rwq("ls", *words.split(), "-o", "ids")
        assert result.as_tuple() == (0, "".join(f"{each}\n" for each in expected.split()), "")

    def test_an_item_in_no_list_has_no_position(self, rwq: Rwq) -> None:
        (record,) = rwq("ls", "--state", "orphaned", "--data", "-o", "json").json
        assert (record["id"], record["state"], record["position"], record["data"]) == (
            *("o1", "orphaned", None),
            "data of o1",
        )
        (record,) = rwq("ls", "--state", "unlisted", "-o", "json").json
        assert record["lease"]["holder"] == "them"

    @pytest.mark.needs("no-touch")
    def test_the_table_shows_lease_and_use(self, rwq: Rwq) -> None:
        result = rwq("ls", "--state", "unlisted", "-o", "table")
        assert result.lines[0].split() == [
            *("ID", "STATE", "HOLDER", "TIME", "LEFT", "LAST", "USE", "SIZE", "DATA")
        ]
        result = rwq("ls", "--state", "orphaned", "-o", "table")
        assert result.lines[0].split() == ["ID", "STATE", "LAST", "USE", "SIZE", "DATA"]
        assert (result.code, result.notes) == (0, "1 shown of jobs\n")
        result = rwq("ls", "--state", "orphaned", "--id-glob", "x", "-o", "table")
        assert result.as_tuple() == (0, "No such items in jobs.\n", "")


def test_an_unknown_state_is_an_error_that_lists_the_known_ones(rwq: Rwq) -> None:
    assert rwq("touch", "--state", "leesed").as_tuple() == (
        2,
        "",
        "rwq: error: no such state: 'leesed'; --state is one of leased, held, unlisted\n",
    )


@pytest.mark.parametrize("command", ["bury", "release", "touch", "rm", "mv", "complete"])
def test_help_lists_the_states_that_a_verb_accepts(rwq: Rwq, command: str) -> None:
    said = " ".join(rwq(command, "--help").text.split())
    offered = said.partition("in this state (repeatable): ")[2].partition(".")[0].split(", ")
    for state in State:
        more = ("--to", "other") if command == "mv" else ()
        taken = rwq(command, "--state", state, "--dry-run", *more).code != 2
        assert taken is (state.value in offered), state


@pytest.mark.parametrize(
    "line",
    ["rm --all --yes", "kick --all", "release --all", "bury --where a=1", "mv --to b --all --yes"],
)
def test_a_queue_that_does_not_exist_is_noted(rwq: Rwq, foreign: Foreign, line: str) -> None:
    absent = rwq(*line.split(), "-q", "jbos")
    assert absent.code == 0
    assert (
        "rwq: jbos: there is no such queue, or it is empty; rwq queues lists the queues\n"
        in absent.notes
    )
    foreign.data(b"orphan")
    foreign.raw.lpush("jobs:processing", b"ghost")
    assert "no such queue" not in rwq(*line.split()).notes


@pytest.mark.parametrize("words", [("--match", "[[a]"), ("--where", "a~[[a]")])
def test_python_does_not_warn_of_a_regular_expression(
    rwq: Rwq, foreign: Foreign, words: tuple[str, str]
) -> None:
    foreign.waiting(b"w")
    assert "Warning" not in rwq.process("ls", *words).notes
