"""`--fields`, `--sort`, `--reverse` and `-o wide`, in every format."""

import csv
import io
import json

import pytest

from rwq_cli.cli.app import CommandInfo, all_commands
from tests.cli.test_program import NEEDS
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

    def test_tables_have_them_in_this_order(self, rwq: Rwq) -> None:
        assert rwq("ls", "--fields", "state,position,id,bytes", "-o", "table").lines == [
            "STATE    #  ID   SIZE",
            "─────────────────────",
            *("waiting  0  b1   10 B", "waiting  1  a   300 B", "waiting  2  c     9 B"),
        ]

    @pytest.mark.parametrize("output", ["json", "jsonl"])
    def test_json_objects_have_them_in_this_order(self, rwq: Rwq, output: str) -> None:
        text = rwq("leases", "--fields", "lease,id,lease_holder", "-o", output).text
        record = json.loads(text.strip("[]\n "))
        assert list(record.items()) == [
            ("lease", {"holder": "worker-7", "ttl_ms": None}),
            ("id", "l1"),
            ("lease_holder", "worker-7"),
        ]

    def test_csv_has_them_in_this_order(self, rwq: Rwq) -> None:
        text = rwq("leases", "--fields", "lease,id", "-o", "csv").text
        assert text == "lease_holder,lease_ttl_ms,id\nworker-7,,l1\n"
        empty = rwq("ls", "delayed", "--fields", "id, due_ms", "-o", "csv").text
        assert empty == "id,due_ms\n"

    def test_a_described_record_is_a_line_for_scripts(self, rwq: Rwq) -> None:
        assert rwq("show", "a", "--fields", "state,bytes").text == "waiting\t300\n"
        assert rwq("stats", "--fields", "waiting,queue").text == "3\tjobs\n"
        assert rwq("show", "a", "--fields", "state", "-o", "json").json == {"state": "waiting"}

    def test_the_data_is_read_if_it_is_chosen(self, rwq: Rwq, three: Foreign) -> None:
        three.raw.set("jobs:item:b1", b"\xff\t")
        assert rwq("ls", "-n", "2", "--fields", "id,data").text == f"b1\t\\xff\\t\na\t{'x' * 300}\n"
        (record,) = rwq("ls", "-n", "1", "--fields", "data_b64", "-o", "json").json
        assert record == {"data_b64": "/wk="}

    def test_outcomes_have_them_too(self, rwq: Rwq) -> None:
        text = rwq("complete", "a", "--fields", "status,id", "-o", "csv").text
        assert text == "status,id\ncompleted,a\n"
        assert rwq("export", "--fields", "id", "-o", "csv").text.startswith("id\n")

    @pytest.mark.parametrize("line", ["ls", "show a", "complete a", "lease", "leases", "export"])
    @pytest.mark.parametrize("output", ["table", "json", "plain", "ids"])
    def test_an_unknown_field_is_an_error_before_any_work(
        self, rwq: Rwq, three: Foreign, line: str, output: str
    ) -> None:
        result = rwq(*line.split(), "--fields", "id,colour", "-o", output)
        assert (result.code, result.text) == (2, "")
        assert "no field 'colour'" in result.notes
        assert "the fields are " in result.notes
        assert three.raw.llen("jobs:queue") == 3

    def test_no_field_at_all_is_an_error(self, rwq: Rwq) -> None:
        assert "--fields names no field" in rwq("ls", "--fields", " ,").notes

    def test_any_field_is_cut_to_fit(self, rwq: Rwq, three: Foreign) -> None:
        three.waiting(b"0123456789" * 3)
        words = ("show", "0123456789" * 3, "--fields", "meaning,next,id", "-o", "table")
        header, _, row = rwq(*words, variables={"COLUMNS": "40"}).lines
        assert header.split() == ["MEANING", "NEXT", "ID"]
        assert max(len(header), len(row)) <= 40
        assert (row.count("…"), row[-1]) == (3, "9")


@pytest.mark.usefixtures("three")
@pytest.mark.needs("no-touch")
class TestOrder:
    @pytest.mark.parametrize(
        ("words", "ids"),
        [
            ("--sort bytes", "c b1 a"),
            ("--sort bytes --reverse", "a b1 c"),
            ("--sort id", "a b1 c"),
            ("--sort id --reverse", "c b1 a"),
            ("--reverse", "c a b1"),
            ("--sort bytes -n 2", "c b1"),
            ("--sort position --reverse", "c a b1"),
        ],
    )
    @pytest.mark.parametrize("output", ["ids", "plain", "table", "jsonl"])
    def test_what_was_read_is_sorted(self, rwq: Rwq, words: str, ids: str, output: str) -> None:
        text = rwq("ls", *words.split(), "-o", output).text
        if output == "jsonl":
            found = [json.loads(line)["id"] for line in text.splitlines()]
        else:
            column = {"ids": 0, "plain": 0, "table": 1}[output]
            lines = text.splitlines()[2 if output == "table" else 0 :]
            found = [line.split()[column] for line in lines]
        assert found == ids.split()

    def test_records_without_the_field_come_last(self, rwq: Rwq, three: Foreign) -> None:
        three.abandoned(b"x1")
        for words in ((), ("--reverse",)):
            text = rwq("ls", "processing", "--sort", "lease_holder", "-o", "ids", *words).text
            assert text == "l1\nx1\n"

    def test_the_field_need_not_be_shown(self, rwq: Rwq) -> None:
        assert rwq("ls", "--sort", "bytes", "--fields", "id").text == "c\nb1\na\n"
        rows = list(csv.reader(io.StringIO(rwq("ls", "--sort", "preview", "-o", "csv").text)))
        assert [row[1] for row in rows[1:]] == ["b1", "c", "a"]

    def test_an_unknown_field_is_an_error(self, rwq: Rwq) -> None:
        result = rwq("ls", "--sort", "size", "-o", "ids")
        assert result.code == 2
        assert result.notes.startswith("rwq: error: no field 'size'; the fields are queue, ")

    @pytest.mark.parametrize("words", [("--sort", "id"), ("--reverse",)])
    def test_verbs_have_no_order(self, rwq: Rwq, three: Foreign, words: tuple[str, ...]) -> None:
        result = rwq("complete", "a", *words)
        assert (result.code, result.text) == (2, "")
        assert "--sort, --reverse and --by work only for listings" in result.notes
        assert three.raw.llen("jobs:queue") == 3


@pytest.mark.usefixtures("three")
@pytest.mark.needs("no-touch")
class TestWide:
    def test_it_has_every_column_at_any_width(self, rwq: Rwq, three: Foreign) -> None:
        three.raw.set("jobs:item:a", b"y" * 150)
        code, seen = rwq.on_screen("ls", "-o", "wide", columns=40)
        header, _, *rows = seen.decode().splitlines()
        assert code == 0
        for title in ("QUEUE", "#", "ID", "STATE", "HOLDER", "TIME LEFT", "DUE", "BURIED"):
            assert title in header
        for title in ("REASON", "RETURNS", "LAST USE", "SIZE", "DATA"):
            assert title in header
        assert rows[1].endswith("y" * 150)
        assert "3 shown of 3 waiting in jobs" in rows[-1]


@pytest.mark.usefixtures("three")
@pytest.mark.needs("no-touch")
class TestIndentedJson:
    def test_one_record_is_indented_on_a_terminal(self, rwq: Rwq) -> None:
        seen = rwq.on_screen("show", "a", "-o", "json")[1].decode()
        assert seen.startswith('{\n  "queue": "jobs",\n')
        piped = rwq("show", "a", "-o", "json")
        assert {**json.loads(seen), "idle_seconds": 0} == {**piped.json, "idle_seconds": 0}
        assert piped.text.count("\n") == 1

    def test_it_is_safe_too(self, rwq: Rwq, three: Foreign) -> None:
        three.raw.set("jobs:item:a", "\x1b[2J\u202e\x7f")
        seen = rwq.on_screen("show", "a", "--data", "-o", "json")[1].decode()
        assert json.loads(seen)["data"] == "\x1b[2J\u202e\x7f"
        assert seen.replace("\n", "").isprintable()


class TestBeforeAnythingIsDone:
    """What a command cannot write is refused before it runs."""

    @pytest.mark.parametrize(
        "command",
        [
            each
            for each in all_commands()
            if not (each.manual.reads_only or each.manual.works_read_only)
            and each.path not in ("demo",)
        ],
        ids=lambda each: each.path,
    )
    @pytest.mark.parametrize("words", [("--fields", "colour"), ("--sort", "colour")])
    def test_no_command_that_changes_something_runs(
        self,
        rwq: Rwq,
        monkeypatch: pytest.MonkeyPatch,
        command: CommandInfo,
        words: tuple[str, ...],
    ) -> None:
        def never(*_: object) -> None:
            raise AssertionError("it was started")

        monkeypatch.setattr("rwq_cli.cli.command.TyperCommand.invoke", never)
        result = rwq(*command.path.split(), *NEEDS.get(command.path, ()), *words)
        assert (result.code, result.text) == (2, "")
        assert "no field 'colour'" in result.notes or "work only for listings" in result.notes

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("undo --list --sort colour", "no field 'colour'"),
            ("undo --prune --older-than 1d --fields state,colour", "no field 'colour'"),
            ("undo --prune --older-than 1d --sort state", "work only for listings"),
            ("work --dry-run --sort colour -- true", "no field 'colour'"),
            ("clean light --every 1s --reverse", "work only for listings"),
        ],
    )
    def test_options_decide_which_fields_there_are(self, rwq: Rwq, line: str, said: str) -> None:
        result = rwq(*line.split())
        assert (result.code, result.text) == (2, "")
        assert said in result.notes
        assert result.notes.count("\n") == 1


@pytest.mark.usefixtures("three")
class TestNothingToPrint:
    """A format that leaves nothing of the records is refused."""

    @pytest.mark.parametrize(
        "line",
        [
            "stats",
            "stats -q jobs -q other",
            "stats --watch 1s",
            "queues",
            "doctor",
            "wait --below 9",
        ],
    )
    def test_no_data(self, rwq: Rwq, line: str) -> None:
        assert rwq(*line.split(), "-o", "data").as_tuple() == (
            2,
            "",
            "rwq: error: -o data prints nothing of what this command lists; "
            "use one of table, plain, wide, json, jsonl, csv\n",
        )

    @pytest.mark.parametrize("words", [("--reverse",), ("--sort", "code")])
    def test_the_items_of_findings_have_no_order(self, rwq: Rwq, words: tuple[str, ...]) -> None:
        assert rwq("doctor", "-o", "ids").text == "l1\n"
        result = rwq("doctor", "-o", "ids", *words)
        assert (result.code, result.text) == (2, "")
        assert "-o ids prints items, and --sort and --reverse order" in result.notes
