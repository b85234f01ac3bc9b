"""What holds for every verb, each by its line of the registry."""

import csv
import io
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import redis

from rwq_cli.cli.options import COMMON_NAMES
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.tally import WORDS
from tests.conftest import Foreign, contents
from tests.driver import Result, Rwq, configure
from tests.verbs import COMMANDS, LINES, VERBS, WITH_SERVER, fill, has_option, words_of

pytestmark = pytest.mark.usefixtures("slept_s")

NO_TERMINAL = "rwq: error: this needs confirmation, and there is no terminal to ask on: rwq will "
READ_ONLY = (
    "rwq: error: context prod is read-only; "
    "--write allows this one command; --dry-run shows what it would do\n"
)
# Those that ask, and as options choose the items, these, too.
ASKING = {
    **{path: line.replace(" --yes", "") for path, line in LINES.items() if " --yes" in line},
    **{f"{path} --all": f"{path} --all" for path in ("complete", "release", "bury", "kick")},
}
# Those that show records, and need no context.
RECORDS = [
    path for path in LINES if COMMANDS[path].manual.record and not path.startswith("context ")
]
WITHOUT_CONTEXT = [path for path in LINES if not path.startswith("context ")]
every_verb = pytest.mark.parametrize("path", LINES)
Run = Callable[..., Result]


@pytest.fixture
def run(rwq: Rwq, foreign: Foreign) -> Run:
    """Runs the line of a command, with further options, on the queue as it is filled."""

    def run_line(path: str, *options: str, line: str = "", **more: str) -> Result:
        fill(foreign)
        words = [*line.split(), *options] if line else words_of(path, *options)
        result = rwq(*words, stdin=VERBS[path].stdin if path in VERBS else b"", variables=more)
        assert b"this is a bug" not in result.err, words
        assert b"Traceback" not in result.err, words
        return result

    return run_line


@pytest.fixture
def filled(foreign: Foreign) -> dict[bytes, object]:
    """What the server holds before each line."""
    fill(foreign)
    return contents(foreign.raw)


@every_verb
def test_an_empty_text_is_an_unset_variable(path: str, rwq: Rwq, raw: redis.Redis) -> None:
    """`--url "$UNSET"` in a script must not mean another server, nor `--reason` no reason."""
    results = {
        parameter.opts[0]: rwq(*path.split(), parameter.opts[-1], "")
        for parameter in COMMANDS[path].command.params
        if not (parameter.param_type_name == "argument" or parameter.is_flag)
        and (parameter.name not in COMMON_NAMES or path == "ls")
    }
    error = "{} is empty; is a variable in the script unset?"
    assert {
        option: (result.code, error.format(option) in result.notes + result.text)
        for option, result in results.items()
    } == dict.fromkeys(results, (3 if path == "check" else 2, True))
    assert raw.keys() == []


def usage_code(path: str) -> int:
    """The exit code of a usage error, which would be an alarm of a monitor."""
    return 3 if COMMANDS[path].manual.monitors else 2


def said(path: str, result: Result) -> str:
    """Where a command says what is wrong."""
    return result.text if COMMANDS[path].manual.monitors else result.notes


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("-o", "xml"), "-o cannot be 'xml'; it must be one of table, plain, wide, json, "),
        (("--color", "yes"), "--color cannot be 'yes'; it must be one of auto, always, never"),
        (("--reply-timeout", "0"), "--reply-timeout must be more than 0; "),
        (("--nothing",), "no such option: --nothing"),
    ],
)
@every_verb
def test_what_cannot_be_is_refused_before_any_work(
    run: Run,
    foreign: Foreign,
    filled: dict[bytes, object],
    path: str,
    options: tuple[str, ...],
    reason: str,
) -> None:
    result = run(path, *options)
    assert (result.code, reason in said(path, result)) == (usage_code(path), True)
    assert contents(foreign.raw) == filled


@pytest.mark.parametrize("option", ["--fields", "--sort"])
@pytest.mark.parametrize("path", RECORDS)
def test_an_unknown_field_is_refused_before_work(
    run: Run, foreign: Foreign, filled: dict[bytes, object], path: str, option: str
) -> None:
    result = run(path, option, "colour")
    assert result.code == usage_code(path)
    reasons = ("no field 'colour'; the fields are ", "--by work only for listings")
    assert any(reason in said(path, result) for reason in reasons)
    assert contents(foreign.raw) == filled


@pytest.mark.parametrize("path", WITH_SERVER)
def test_no_server_is_one_line_or_one_object(run: Run, path: str) -> None:
    monitors = COMMANDS[path].manual.monitors
    result = run(path, "-u", "redis://127.0.0.1:1/0")
    assert result.code == (3 if monitors else 69)
    assert "cannot reach redis://127.0.0.1:1/0: " in said(path, result)
    assert monitors or (result.text, result.notes.count("\n")) == ("", 1)
    # An export has one format.
    result = run(path, "-u", "redis://127.0.0.1:1/0", "-o", "jsonl" if path == "export" else "json")
    assert (result.text, json.loads(result.err)["code"]) == ("", "unreachable")


class TestProtection:
    @pytest.fixture
    def protect(self, rwq: Rwq) -> Callable[[str], None]:
        """Protect the server of the tests."""

        def written(how: str) -> None:
            url = rwq.variables["RWQ_URL"]
            configure(rwq.home, f'[contexts.prod]\nurl = "{url}"\n{how}\n')

        return written

    @pytest.mark.parametrize("path", WITHOUT_CONTEXT)
    def test_a_read_only_context_refuses_changes(
        self,
        run: Run,
        foreign: Foreign,
        filled: dict[bytes, object],
        protect: Callable[[str], None],
        path: str,
    ) -> None:
        run(path)
        changes = contents(foreign.raw) != filled
        assert not (changes and COMMANDS[path].manual.reads_only)
        assert changes or not VERBS[path].counts
        protect("read_only = true")
        result = run(path)
        is_refused = result.as_tuple() == (2, "", READ_ONLY)
        assert is_refused == ("read-only" in result.notes) == changes
        assert contents(foreign.raw) == filled
        if changes and has_option(path, "--dry-run"):
            assert run(path, "--dry-run").code in (0, 3)
            assert contents(foreign.raw) == filled
        assert not changes or run(path, "--write").code in (0, 3)

    @pytest.mark.parametrize("path", [path for path in LINES if path in ASKING])
    def test_without_a_terminal_it_needs_yes(
        self, run: Run, foreign: Foreign, filled: dict[bytes, object], path: str
    ) -> None:
        result = run(path, line=ASKING[path])
        assert (result.code, result.text) == (2, "")
        assert result.notes.startswith(NO_TERMINAL)
        assert result.notes.endswith("; use --yes\n")
        assert contents(foreign.raw) == filled

    @pytest.mark.parametrize("line", ASKING.values())
    def test_a_protected_context_asks_for_its_name(
        self,
        run: Run,
        foreign: Foreign,
        filled: dict[bytes, object],
        protect: Callable[[str], None],
        line: str,
    ) -> None:
        protect('protect = "type"')
        results = [run("", *yes, line=line) for yes in ((), ("--yes",))]
        hint = "; use --yes=prod to confirm\n"
        assert [
            (result.code, "use --yes=prod" in result.notes, result.notes.endswith(hint))
            for result in results
        ] == [(2, True, False), (2, True, True)]
        assert contents(foreign.raw) == filled
        assert run("", "--dry-run", line=line).code in (0, 3)
        assert run("", "--yes=prod", line=line).code in (0, 3)

    # A list of undo files is of all servers.
    @pytest.mark.parametrize("path", [p for p in LINES if has_option(p, "--yes") and p != "undo"])
    def test_the_name_of_another_context_is_refused(
        self, run: Run, foreign: Foreign, filled: dict[bytes, object], path: str
    ) -> None:
        """Whether or not it asks."""
        result = run(path, "--yes=dev")
        assert (result.code, result.text) == (2, "")
        assert result.notes.startswith("rwq: error: --yes=dev is for another server: ")
        assert contents(foreign.raw) == filled


# Which run it was, and what leasing an item changes.
_OF_THE_RUN = ("dry_run", "state", "lease", "position", "idle_seconds")


def _records(result: Result) -> list[Any]:
    return [{name: r[name] for name in r if name not in _OF_THE_RUN} for r in result.jsonl]


def _notes(result: Result) -> str:
    """What was said, as a dry run says it, without times and what concerns files."""
    notes = re.sub(r"; undo file .*|, a new or .*", "", result.notes)
    notes = re.sub(r"^dry run: (these would be leased now\n)?", "", notes, flags=re.MULTILINE)
    notes = re.sub(r"\bwould ", "", notes)
    return re.sub(r"[a-z]+(?= \d)", lambda word: _infinitive(word[0]), notes)


def _infinitive(word: str) -> str:
    return {"fixed": "fix", "left": "leave"}.get(word) or (
        WORDS[word].infinitive if word in WORDS else word
    )


# What `--dry-run` of a worker says is said of no run.
@pytest.mark.parametrize("path", [p for p in LINES if has_option(p, "--dry-run") and p != "work"])
def test_a_dry_run_says_what_the_run_does(rwq: Rwq, foreign: Foreign, path: str) -> None:
    """And changes nothing."""
    # What the doctor says of the server has the time of its start.
    more = {
        "doctor": ["--fix", "--skip", "restarted,flushed,no-persistence"],
        "add": ["--id-from", "line"],
    }
    words = ["undo", "--yes"] if path == "undo" else [*LINES[path].split(), *more.get(path, [])]
    fill(foreign)
    if path == "undo":
        assert rwq("rm", "w1", "b1", "--yes").code == 0
    before, stdin = contents(foreign.raw), VERBS[path].stdin
    dry = rwq(*words, "-o", "jsonl", "--dry-run", stdin=stdin)
    assert contents(foreign.raw) == before
    done = rwq(*words, "-o", "jsonl", stdin=stdin)
    assert contents(foreign.raw) != before
    assert (dry.code, _records(dry)) == (done.code, _records(done))
    assert _notes(dry) == _notes(done)


SEVERAL_QUEUES = {
    *("ls", "leases", "stats", "check", "wait", "clean light", "clean deep", "doctor", "queues"),
    *("export", "lease", "work", "add", "diff", "tail", "history"),
}


@pytest.mark.parametrize("path", [path for path in WITH_SERVER if not path.startswith("context ")])
def test_two_queues_are_an_error_where_one_is_taken(
    run: Run, foreign: Foreign, filled: dict[bytes, object], path: str
) -> None:
    result = run(path, "-q", "a", "-q", "b")
    takes_one = "this command takes one queue; give -q once" in result.notes
    assert takes_one == (path not in SEVERAL_QUEUES)
    if takes_one:
        assert contents(foreign.raw) == filled


# An undo has nothing to do there, and the doctor reports it.
@pytest.mark.parametrize(
    "path", [p for p in LINES if VERBS[p].operations and p not in ("undo", "doctor")]
)
@pytest.mark.parametrize("name", ["queue", "processing", "delayed", "buried"])
def test_a_wrong_type_is_named_before_a_write(
    rwq: Rwq, foreign: Foreign, name: str, path: str
) -> None:
    fill(foreign)
    foreign.raw.delete(f"jobs:{name}")
    foreign.raw.set(f"jobs:{name}", "not a list")
    before = contents(foreign.raw)
    result = rwq(*words_of(path), stdin=VERBS[path].stdin)
    assert (result.code, result.text) == (69, "")
    assert f"jobs:{name} has the wrong type" in result.notes
    assert contents(foreign.raw) == before


@pytest.mark.parametrize("path", WITHOUT_CONTEXT)
def test_quiet_leaves_results_and_errors(run: Run, path: str) -> None:
    result = run(path, "-Q")
    loud = run(path)
    assert result.code == loud.code
    # What a clean did is its result.
    is_clean = path.startswith("clean ")
    assert is_clean or all(line.startswith("rwq: ") for line in result.notes.splitlines())
    assert result.code in (1, 3) or is_clean or result.notes == ""


@pytest.mark.parametrize("path", RECORDS)
def test_every_format_can_be_read_by_its_readers(run: Run, path: str) -> None:
    results = {output: run(path, "-o", output) for output in OutputFormat}
    refused = {output for output, result in results.items() if result.code == usage_code(path)}
    assert refused <= {OutputFormat.DATA, OutputFormat.IDS, OutputFormat.CSV}
    assert isinstance(results[OutputFormat.JSON].json, list | dict)
    assert all(isinstance(record, dict) for record in results[OutputFormat.JSONL].jsonl)
    rows = [*csv.reader(io.StringIO(results[OutputFormat.CSV].text))]
    assert len({len(row) for row in rows}) <= 1
    colored = [output for output, result in results.items() if b"\x1b" in result.out + result.err]
    assert colored == []
