"""Every command in every format: what is on stdout can be read by what it is meant for."""

import csv
import io
import re
from collections.abc import Callable
from typing import Any

import pytest

from rwq_cli.output.field import Fields
from tests.cli.lines import COMMANDS
from tests.conftest import ABSENT, Foreign
from tests.driver import Result, Rwq

# Listings, with their columns in CSV, which are those of their tables.
_IN_ALL = "id state lease_holder lease_ttl_ms returns idle_seconds bytes preview"
LISTINGS = {
    "lease -n 5": "id lease_ttl_ms returns bytes data",
    "lease -n 5 --dry-run": "id lease_ttl_ms returns bytes data",
    "ls": "position id returns idle_seconds bytes preview",
    "ls --data": "position id returns idle_seconds bytes data",
    "ls all": _IN_ALL,
    "ls processing": _IN_ALL,
    "leases": "id state lease_holder lease_ttl_ms returns bytes preview",
    "stats -q jobs -q other": "queue waiting leased abandoned held delayed buried",
    "queues": "queue waiting processing abandoned delayed buried",
    "doctor --grace 0": "code severity count fixed left examples command",
    "doctor --grace 0 --fix --dry-run": "code severity count fixed left examples command",
}
# One record that is asked for: an object in JSON.
OBJECTS = [
    *("show w1", "show gone", "result w1", "result gone --wait", "stats", "stats --fast"),
    *("stats --deep", "check", "wait --below 9", "wait --timeout 0", "local status"),
]
# Verbs, with what their summary has besides the queue.
VERBS = {
    "add --id new x": "added duplicates rejected empty",
    "complete w1 gone": "undo_file completed missing not_owner failures",
    "touch l1 w1 gone": "touched not_leased missing failures",
    "release a1 l1 w1 gone": "released already_waiting moving not_owner missing failures",
    "release a1 l1 gone --delay 1h": "delayed moving not_owner missing failures",
    "bury w1 l1 gone": "buried already_buried moving not_owner missing failures",
    "kick w1 gone": "kicked not_buried moving not_owner missing failures",
    "rm w1 gone --yes": "undo_file removed missing failures",
    "mv --to other w1 l1 gone --yes": (
        "to to_b64 undo_file moved not_owner conflict missing failures"
    ),
    "edit w1 --yes -f /dev/null": "undo_file set missing failures",
    "purge --yes": "undo_file removed results failures",
    "clean light --grace 0": "returned dropped promoted pruned buried",
    "clean deep --grace 0": "returned dropped promoted pruned buried",
}


# Commands that print in a pipe what they print on a terminal.
DESCRIBING = ("show", "stats", "doctor", "result", "wait", "local")
DEEP = "--deep also shows items in no list\n"
EMPTY = [
    *("ls", "ls all", "ls leased", "ls abandoned", "ls --match x", "leases"),
    *("leases --holder x", "queues"),
]

pytestmark = pytest.mark.usefixtures("slept_s")

Run = Callable[..., Result]


@pytest.fixture
def run(rwq: Rwq) -> Run:
    """Runs a command line given as one string; nothing of it may be a bug or a traceback."""

    def run_line(line: str, *more: str) -> Result:
        result = rwq(*line.split(), *more, variables={"XDG_STATE_HOME": str(rwq.home)})
        assert b"this is a bug" not in result.err
        assert b"Traceback" not in result.err
        return result

    return run_line


def fill(foreign: Foreign) -> None:
    """Two waiting, one abandoned, one leased by another, one ghost in processing."""
    foreign.raw.flushall()
    foreign.waiting(b"w1", b"w2")
    foreign.abandoned(b"a1")
    foreign.leased(b"l1", holder=b"worker-7")
    foreign.raw.lpush(foreign.keys.processing, b"g1")


@pytest.fixture
def anew(run: Run, foreign: Foreign) -> Run:
    """Runs a command line on the queue as it is filled, whatever ran before."""

    def run_line(line: str, *more: str) -> Result:
        fill(foreign)
        return run(line, *more)

    return run_line


def declared(line: str) -> Fields[Any]:
    """The fields of the records of a line, as the reference lists them."""
    path = next(path for path in COMMANDS if f"{line} ".startswith(f"{path} "))
    fields = COMMANDS[path].manual.fields()
    assert fields is not None
    return fields


def json_names(line: str) -> list[str]:
    """The names of a record in JSON."""
    found: list[str] = []
    for field in declared(line).all:
        if "." not in field.name:
            found += [field.name, f"{field.name}_b64"][: 1 + field.is_bytes]
    return found


def csv_of(result: Result) -> list[list[str]]:
    return list(csv.reader(io.StringIO(result.text)))


def tabbed(result: Result) -> list[list[str]]:
    return [row.split("\t") for row in result.text.splitlines()]


def without_times(output: bytes) -> bytes:
    """The output without time spans and times left, which depend on when the command ran."""
    times = rb"just now|\b(\d+(\.\d+)?[smhd])+( ago)?\b|\b5\d{4}\b|(?<=\t)\d(?=\t)"
    return re.sub(times, b"SPAN", output)


class TestListings:
    def test_each_format_has_the_fields_or_columns(self, anew: Run) -> None:
        for line, columns in LISTINGS.items():
            records = anew(line, "-o", "json").json
            assert records
            assert [list(record) for record in records] == [json_names(line)] * len(records), line
            rows = csv_of(anew(line, "-o", "csv"))
            assert len(rows) > 1
            assert {len(row) for row in rows} == {len(rows[0])}, line
            assert rows[0] == columns.split(), line
            plain = tabbed(anew(line, "-o", "plain"))
            assert {len(row) for row in plain} == {len(plain[0])}, line
            assert (len(plain[0]) > 3, plain[0][0] in ("#", "ID", "QUEUE")) == (True, False)
            # A pipe gets plain lines of a listing, and else a table.
            output = "table" if line.split()[0] in DESCRIBING else "plain"
            given = anew(line, "-o", output).out
            assert without_times(anew(line).out) == without_times(given), line

    def test_ids_are_one_a_line(self, anew: Run) -> None:
        expected = {
            "lease -n 5": "w1 w2",
            "ls": "w1 w2",
            "ls all": "w1 w2 a1 l1 g1",
            "leases": "a1 g1 l1",
            "show w1 w2": "w1 w2",
            "stats -q jobs -q other": "jobs other",
            "queues": "jobs",
            "doctor --grace 0": "a1 g1",
        }
        found = {line: anew(line, "-o", "ids").text for line in expected}
        assert found == {line: f"{ids} ".replace(" ", "\n") for line, ids in expected.items()}

    def test_data_is_separated_but_for_one_item(self, anew: Run) -> None:
        expected = {
            "lease -n 5": "data of w1\ndata of w2\n",
            "lease": "data of w1",
            "lease --dry-run": "data of w1",
            "ls": "data of w1\ndata of w2\n",
            "leases": "data of a1\ndata of l1\n",
            "show w1": "data of w1",
            "show w1 w2": "data of w1\ndata of w2\n",
        }
        assert {line: anew(line, "-o", "data").text for line in expected} == expected


def test_an_object_is_one_in_each_format(anew: Run) -> None:
    for line in OBJECTS:
        result = anew(line, "-o", "json")
        assert (list(result.json), result.out.count(b"\n")) == (json_names(line), 1), line
        rows = csv_of(anew(line, "-o", "csv"))
        assert [len(rows), len(rows[0])] == [2, len(rows[1])], line
        # What a monitor reads is a line of its own.
        if line == "check":
            continue
        shown = anew(line)
        assert without_times(shown.out) == without_times(anew(line, "-o", "table").out), line
        assert b"\t" not in shown.out
        plain = tabbed(anew(line, "-o", "plain"))
        assert [len(row) for row in plain] == [2] * len(plain), line
        assert [row[0] for row in plain] == declared(line).flat_names, line


def test_each_format_has_the_counts_or_the_outcomes(anew: Run) -> None:
    for line, names in VERBS.items():
        result = anew(line, "-o", "json")
        assert {*result.json} == {"queue", "queue_b64", "dry_run", *names.split()}, line
        assert result.notes == "", line
        result = anew(line, "-o", "jsonl")
        assert result.jsonl
        fields = json_names(line)
        assert [list(record) for record in result.jsonl] == [fields] * len(result.jsonl), line
        assert result.err.count(b"\n") == 1, "the summary"
        rows = csv_of(anew(line, "-o", "csv"))
        assert (rows[0], {len(row) for row in rows}) == (fields, {len(fields)}), line
        for output in ("plain", "table", "data"):
            result = anew(line, "-o", output)
            *named, summary = result.notes.splitlines()
            assert (result.out, summary.startswith("rwq: ")) == (b"", False), (line, output)
            assert all(failure.startswith("rwq: ") for failure in named), (line, output)


@pytest.mark.parametrize(
    ("line", "ids", "failed", "summary"),
    [
        ("add --id new x", "new", "", "added 1"),
        ("add --id w1 x", "", "", "duplicates 1"),
        ("complete w1 gone", "w1", "gone", "completed 1, missing 1"),
        ("touch l1 w1 gone", "l1", "w1 gone", "touched 1, not leased 1, missing 1"),
        ("clean light --grace 0", "a1 g1", "", "returned 1, dropped 1"),
    ],
)
def test_ids_are_those_acted_on(anew: Run, line: str, ids: str, failed: str, summary: str) -> None:
    result = anew(line, "-o", "ids")
    # The order is that of the work, which a clean may choose.
    assert sorted(result.text.split()) == ids.split()
    *failures, last = result.notes.splitlines()
    assert (last, [each.split(": ")[1] for each in failures]) == (summary, failed.split())


class TestEmpty:
    @pytest.mark.needs("no-touch")
    def test_machines_get_an_empty_listing(self, run: Run) -> None:
        for line in EMPTY:
            note = "" if line == "queues" else ABSENT
            more = DEEP if line == "ls all" else ""
            assert run(line, "-o", "json").as_tuple() == (0, "[]\n", note + more), line
            assert run(line, "-o", "ids").as_tuple() == (0, "", note), line
            # A queue has no data.
            for output in ("jsonl", "plain", *(() if line == "queues" else ("data",))):
                assert run(line, "-o", output).as_tuple() == (0, "", note + more), (line, output)
            header = run(line, "-o", "csv")
            assert (header.code, header.text.count("\n")) == (0, 1), line
            assert "id," in header.text or header.text.startswith("queue,"), line

    def test_people_get_a_sentence(self, run: Run) -> None:
        for line, sentence in {
            "ls": "No waiting items in jobs.",
            "ls processing": "No processing items in jobs.",
            "ls abandoned": "No abandoned items in jobs.",
            "ls all": "No items in jobs.",
            "leases": "No leases in jobs.",
            "queues": "No queues on this server.",
            "queues 'x*'": "No such queues.",
        }.items():
            note = "" if line.startswith("queues") else ABSENT
            note += DEEP if line == "ls all" else ""
            assert run(line, "-o", "table").as_tuple() == (0, f"{sentence}\n", note)

    def test_a_doctor_of_no_queues_finds_nothing(self, run: Run) -> None:
        for output, text in {"json": "[]\n", "jsonl": "", "csv": "", "ids": ""}.items():
            found = run("doctor --all-queues", "-o", output).as_tuple()
            assert found == (0, text, "rwq: no queues on this server\n"), output


def test_an_item_in_json(run: Run, foreign: Foreign) -> None:
    """What is in the fields, for one listing. The server's clock may strike a second meanwhile."""
    foreign.waiting(b"a")
    text = run("ls --data", "-o", "json").text
    assert text.replace('"idle_seconds": 1,', '"idle_seconds": 0,') == (
        '[\n {"queue": "jobs", "queue_b64": null, "id": "a", "id_b64": null, '
        '"state": "waiting", "bytes": 9, "data": "data of a", "data_b64": null, '
        '"preview": "data of a", "position": 0, "idle_seconds": 0, "lease": null, '
        '"due_ms": null, "buried_ms": null, "reason": null, "reason_b64": null, '
        '"returns": null, "data_json": null}\n]\n'
    )


def test_plain_lines_have_the_columns_of_the_help(run: Run, foreign: Foreign) -> None:
    fill(foreign)
    run("bury w1")
    foreign.delayed(b"d1", 4_000_000_000_000)
    for line, record in (
        ("ls", "waiting"),
        ("ls delayed", "delayed"),
        ("ls buried", "buried"),
        *((f"ls {which}", "otherwise") for which in ("all", "processing", "leased", "abandoned")),
        ("ls --state leased", "otherwise"),
        ("leases", "a lease"),
        ("lease --dry-run -n 2", "an item"),
        ("lease --dry-run -n 2 -q jobs -q other", "of several queues"),
        ("leases -q jobs -q other", "of several queues"),
        ("queues", "a queue"),
    ):
        plain = COMMANDS[line.split()[0]].manual.plain
        fields = (
            plain[record].replace("the same, then", f"{next(iter(plain.values()))},").split(", ")
        )
        rows = tabbed(run(line))
        assert rows
        assert {len(row) for row in rows} == {len(fields)}, line
        records = run(line, "-o", "jsonl").jsonl
        assert fields[0] == ("queue" if line == "queues" else "id")
        for name in ("id", "state", "bytes", "queue", "waiting", "due_ms", "reason", "position"):
            if name in fields:
                column = [row[fields.index(name)] for row in rows]
                values = [each[name] for each in records]
                assert column == ["" if value is None else str(value) for value in values], line
