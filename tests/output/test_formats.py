"""Every command in every format: what is on stdout can be read by what it is meant for."""

import csv
import io
import re
from collections.abc import Callable
from typing import Any

import pytest

from rwq_cli.output.field import Fields
from tests.conftest import Foreign, absent
from tests.driver import Result, Rwq
from tests.verbs import COMMANDS, VERBS, fill

# Listings, with their columns in CSV, which are those of their tables.
LISTINGS = {
    line: columns for row in VERBS.values() for line, columns in (row.listings or {}).items()
}
# One record that is asked for: an object in JSON.
OBJECTS = list(dict.fromkeys(line for row in VERBS.values() for line in row.objects))
# Verbs, with what their summary has besides the queue.
COUNTS = {row.line: row.counts for row in VERBS.values() if row.counts}


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
    times = rb"just now|\b(\d+(\.\d+)?(ms|[smhd]))+( ago)?\b|\b\d{5,}\b|(?<=\t)\d(?=\t)"
    # Numbers are aligned with them.
    return re.sub(rb" +", b" ", re.sub(times, b"SPAN", output))


@pytest.mark.parametrize("line", LISTINGS)
def test_each_format_has_the_fields_or_columns(anew: Run, line: str) -> None:
    records = anew(line, "-o", "json").json
    assert records
    assert [list(record) for record in records] == [json_names(line)] * len(records)
    rows = csv_of(anew(line, "-o", "csv"))
    assert len(rows) > 1
    assert {len(row) for row in rows} == {len(rows[0])}
    assert rows[0] == LISTINGS[line].split()
    plain = tabbed(anew(line, "-o", "plain"))
    assert {len(row) for row in plain} == {len(plain[0])}
    assert (len(plain[0]) > 3, plain[0][0] in ("#", "ID", "QUEUE")) == (True, False)
    # A pipe gets plain lines of a listing, and else a table.
    output = "table" if line.split()[0] in DESCRIBING else "plain"
    assert without_times(anew(line).out) == without_times(anew(line, "-o", output).out)


@pytest.mark.parametrize(
    ("line", "ids"),
    {
        "lease -n 5": "w1 w2 w3",
        "ls": "w1 w2 w3",
        "ls all": "w1 w2 w3 a1 a2 l1 h1 g1 d1 b1",
        "leases": "a1 a2 g1 l1 h1",
        "show w1 w2": "w1 w2",
        "stats -q jobs -q other": "jobs other",
        "queues": "copy jobs",
        "doctor --grace 0 --skip orphaned,held": "a1 a2 g1",
    }.items(),
)
def test_ids_are_one_a_line(anew: Run, line: str, ids: str) -> None:
    assert anew(line, "-o", "ids").text == f"{ids} ".replace(" ", "\n")


@pytest.mark.parametrize(
    ("line", "data"),
    {
        "lease -n 2": "data of w1\ndata of w2\n",
        "lease": "data of w1",
        "lease --dry-run": "data of w1",
        "ls -n 2": "data of w1\ndata of w2\n",
        "leases -n 2": "data of a1\ndata of a2\n",
        "show w1": "data of w1",
        "show w1 w2": "data of w1\ndata of w2\n",
    }.items(),
)
def test_data_is_separated_but_for_one_item(anew: Run, line: str, data: str) -> None:
    assert anew(line, "-o", "data").text == data


@pytest.mark.parametrize("line", OBJECTS)
def test_an_object_is_one_in_each_format(anew: Run, line: str) -> None:
    result = anew(line, "-o", "json")
    assert (list(result.json), result.out.count(b"\n")) == (json_names(line), 1)
    rows = csv_of(anew(line, "-o", "csv"))
    assert [len(rows), len(rows[0])] == [2, len(rows[1])]
    # What a monitor reads is a line of its own.
    if line == "check":
        return
    shown = anew(line)
    assert without_times(shown.out) == without_times(anew(line, "-o", "table").out)
    assert b"\t" not in shown.out
    plain = tabbed(anew(line, "-o", "plain"))
    assert [len(row) for row in plain] == [2] * len(plain)
    assert [row[0] for row in plain] == declared(line).flat_names


@pytest.mark.parametrize("line", COUNTS)
def test_each_format_has_the_counts_or_outcomes(anew: Run, line: str) -> None:
    result = anew(line, "-o", "json")
    assert {*result.json} == {"queue", "queue_b64", "dry_run", *COUNTS[line].split()}
    assert result.notes == ""
    result = anew(line, "-o", "jsonl")
    assert result.jsonl
    fields = json_names(line)
    assert [list(record) for record in result.jsonl] == [fields] * len(result.jsonl)
    assert result.err.count(b"\n") == 1, "the summary"
    rows = csv_of(anew(line, "-o", "csv"))
    assert (rows[0], {len(row) for row in rows}) == (fields, {len(fields)})
    results = [anew(line, "-o", output) for output in ("plain", "table", "data")]
    assert [result.out for result in results] == [b""] * 3
    notes = [result.notes.splitlines() for result in results]
    assert [lines[-1] for lines in notes if lines[-1].startswith("rwq: ")] == [], "the summaries"
    assert [note for lines in notes for note in lines[:-1] if not note.startswith("rwq: ")] == []


# What the doctor says of the servers of the tests.
OF_THE_SERVER = "restarted,flushed,no-persistence"


class TestEmpty:
    @pytest.mark.parametrize("line", EMPTY)
    @pytest.mark.needs("no-touch")
    def test_machines_get_an_empty_listing(self, run: Run, rwq: Rwq, line: str) -> None:
        note = "" if line == "queues" else absent(rwq.variables["RWQ_URL"])
        more = DEEP if line == "ls all" else ""
        assert run(line, "-o", "json").as_tuple() == (0, "[]\n", note + more)
        assert run(line, "-o", "ids").as_tuple() == (0, "", note)
        # A queue has no data.
        outputs = ("jsonl", "plain", *(() if line == "queues" else ("data",)))
        results = {output: run(line, "-o", output).as_tuple() for output in outputs}
        assert results == dict.fromkeys(outputs, (0, "", note + more))
        header = run(line, "-o", "csv")
        assert (header.code, header.text.count("\n")) == (0, 1)
        assert "id," in header.text or header.text.startswith("queue,")

    @pytest.mark.parametrize(
        ("line", "sentence"),
        {
            "ls": "No waiting items in jobs.",
            "ls processing": "No processing items in jobs.",
            "ls abandoned": "No abandoned items in jobs.",
            "ls all": "No items in jobs.",
            "leases": "No leases in jobs.",
            "queues": "No queues on this server.",
            "queues 'x*'": "No such queues.",
        }.items(),
    )
    def test_people_get_a_sentence(self, run: Run, rwq: Rwq, line: str, sentence: str) -> None:
        note = "" if line.startswith("queues") else absent(rwq.variables["RWQ_URL"])
        note += DEEP if line == "ls all" else ""
        assert run(line, "-o", "table").as_tuple() == (0, f"{sentence}\n", note)

    @pytest.mark.parametrize(("output", "text"), {"json": "[]\n", "jsonl": "", "ids": ""}.items())
    def test_a_doctor_of_no_queues_finds_nothing(self, run: Run, output: str, text: str) -> None:
        result = run(f"doctor --all-queues --skip {OF_THE_SERVER}", "-o", output)
        assert (result.code, result.text) == (0, text)
        assert result.notes.startswith("rwq: no queues on this server\n")


@pytest.mark.parametrize(
    ("line", "record"),
    [
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
    ],
)
def test_plain_lines_have_the_columns_of_the_help(
    run: Run, foreign: Foreign, line: str, record: str
) -> None:
    fill(foreign)
    run("bury w1")
    foreign.delayed(b"d1", 4_000_000_000_000)
    plain = COMMANDS[line.split()[0]].manual.plain
    fields = plain[record].replace("the same, then", f"{next(iter(plain.values()))},").split(", ")
    rows = tabbed(run(line))
    assert rows
    assert {len(row) for row in rows} == {len(fields)}
    records = run(line, "-o", "jsonl").jsonl
    assert fields[0] == ("queue" if line == "queues" else "id")
    exact = {"id", "state", "bytes", "queue", "waiting", "due_ms", "reason", "position"}
    names = [name for name in fields if name in exact]
    assert [[row[fields.index(name)] for name in names] for row in rows] == [
        ["" if values[name] is None else str(values[name]) for name in names] for values in records
    ]
