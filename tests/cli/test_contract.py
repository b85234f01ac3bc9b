"""What holds for every command of the registry, each with its line of `lines.py`."""

import csv
import io
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from rwq_cli.output.options import OutputFormat
from rwq_cli.output.outcomes import WORDS
from tests.cli.lines import COMMANDS, LINES, STDIN, WITHOUT_SERVER, fill, has_option, words_of
from tests.conftest import Foreign, contents
from tests.driver import Result, Rwq, configure

pytestmark = pytest.mark.usefixtures("slept_s")

NO_TERMINAL = "rwq: error: this needs confirmation, and there is no terminal to ask on: rwq will "
READ_ONLY = (
    "rwq: error: context prod is read-only; "
    "--write allows this one command; --dry-run shows what it would do\n"
)
# Where an option chooses the items, these ask on a protected context.
CHOOSING = ("complete --all", "release --all", "bury --all", "kick --all")
Run = Callable[..., Result]


@pytest.fixture
def run(rwq: Rwq, foreign: Foreign) -> Run:
    """Runs the line of a command, with further options, on the queue as it is filled."""

    def run_line(path: str, *options: str, line: str = "", **more: str) -> Result:
        fill(foreign)
        words = [*line.split(), *options] if line else words_of(path, *options)
        result = rwq(*words, stdin=STDIN.get(path, b""), variables=more)
        assert b"this is a bug" not in result.err, words
        assert b"Traceback" not in result.err, words
        return result

    return run_line


@pytest.fixture
def filled(foreign: Foreign) -> dict[bytes, object]:
    """What the server holds before each line."""
    fill(foreign)
    return contents(foreign.raw)


def usage_code(path: str) -> int:
    """The exit code of a usage error, which would be an alarm of a monitor."""
    return 3 if COMMANDS[path].manual.monitors else 2


def said(path: str, result: Result) -> str:
    """Where a command says what is wrong."""
    return result.text if COMMANDS[path].manual.monitors else result.notes


def test_every_command_has_a_line() -> None:
    assert LINES.keys() == COMMANDS.keys()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("-o", "xml"), "-o cannot be 'xml'; it must be one of table, plain, wide, json, "),
        (("--color", "yes"), "--color cannot be 'yes'; it must be one of auto, always, never"),
        (("--reply-timeout", "0"), "--reply-timeout must be more than 0; "),
        (("--nothing",), "no such option: --nothing"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(
    run: Run, foreign: Foreign, filled: dict[bytes, object], options: tuple[str, ...], reason: str
) -> None:
    for path in LINES:
        result = run(path, *options)
        assert (result.code, reason in said(path, result)) == (usage_code(path), True), path
        assert contents(foreign.raw) == filled, path


@pytest.mark.parametrize("option", ["--fields", "--sort"])
def test_an_unknown_field_is_refused_before_any_work(
    run: Run, foreign: Foreign, filled: dict[bytes, object], option: str
) -> None:
    for path, command in COMMANDS.items():
        # There is no context yet.
        if command.manual.record is None or path.startswith("context "):
            continue
        result = run(path, option, "colour")
        assert result.code == usage_code(path), path
        reasons = ("no field 'colour'; the fields are ", "--by work only for listings")
        assert any(reason in said(path, result) for reason in reasons), path
        assert contents(foreign.raw) == filled, path


def test_a_server_that_is_not_there_is_one_line_or_one_object_and_69(run: Run) -> None:
    for path in LINES.keys() - WITHOUT_SERVER:
        monitors = COMMANDS[path].manual.monitors
        result = run(path, "-u", "redis://127.0.0.1:1/0")
        assert result.code == (3 if monitors else 69), path
        assert "cannot reach redis://127.0.0.1:1/0: " in said(path, result)
        assert monitors or (result.text, result.notes.count("\n")) == ("", 1), path
        result = run(path, "-u", "redis://127.0.0.1:1/0", "-o", "json")
        assert (result.text, json.loads(result.err)["code"]) == ("", "unreachable"), path


class TestProtection:
    @pytest.fixture
    def protect(self, rwq: Rwq) -> Callable[[str], None]:
        """Protect the server of the tests."""

        def written(how: str) -> None:
            url = rwq.variables["RWQ_URL"]
            configure(rwq.home, f'[contexts.prod]\nurl = "{url}"\n{how}\n')

        return written

    def test_a_read_only_context_refuses_all_that_changes_the_server(
        self,
        run: Run,
        foreign: Foreign,
        filled: dict[bytes, object],
        protect: Callable[[str], None],
    ) -> None:
        lines = {path: line for path, line in LINES.items() if not path.startswith("context ")}
        changing = set()
        for path in lines:
            run(path)
            if contents(foreign.raw) != filled:
                changing.add(path)
        assert len(changing) > 12
        assert [path for path in changing if COMMANDS[path].manual.reads_only] == []
        protect("read_only = true")
        for path in lines:
            result = run(path)
            is_refused = result.as_tuple() == (2, "", READ_ONLY)
            assert is_refused == ("read-only" in result.notes) == (path in changing), path
            assert contents(foreign.raw) == filled, path
            if path in changing and has_option(path, "--dry-run"):
                assert run(path, "--dry-run").code in (0, 3), path
                assert contents(foreign.raw) == filled, path
            assert path not in changing or run(path, "--write").code in (0, 3), path

    def test_without_a_terminal_what_asks_needs_yes(
        self, run: Run, foreign: Foreign, filled: dict[bytes, object]
    ) -> None:
        asking = [path for path, line in LINES.items() if " --yes" in line]
        assert {path for path in asking if COMMANDS[path].manual.destructive} >= {
            *("rm", "mv", "purge")
        }
        for path in asking:
            result = run(path, line=LINES[path].replace(" --yes", ""))
            assert (result.code, result.text) == (2, ""), path
            assert result.notes.startswith(NO_TERMINAL), path
            assert result.notes.endswith("; use --yes\n"), path
            assert contents(foreign.raw) == filled, path

    def test_a_protected_context_is_confirmed_by_its_name(
        self,
        run: Run,
        foreign: Foreign,
        filled: dict[bytes, object],
        protect: Callable[[str], None],
    ) -> None:
        protect('protect = "type"')
        asking = [line.replace(" --yes", "") for line in LINES.values() if " --yes" in line]
        for line in (*asking, *CHOOSING):
            for yes in ((), ("--yes",)):
                result = run("", *yes, line=line)
                assert (result.code, result.notes.endswith("; use --yes=prod to confirm\n")) == (
                    (2, True) if yes else (2, False)
                ), line
                assert "use --yes=prod" in result.notes
                assert contents(foreign.raw) == filled, line
            assert run("", "--dry-run", line=line).code in (0, 3), line
            assert run("", "--yes=prod", line=line).code in (0, 3), line

    def test_a_name_of_another_context_is_refused_whether_or_not_it_asks(
        self, run: Run, foreign: Foreign, filled: dict[bytes, object]
    ) -> None:
        for path in LINES:
            # A list of undo files is of all servers.
            if not has_option(path, "--yes") or path == "undo":
                continue
            result = run(path, "--yes=dev")
            assert (result.code, result.text) == (2, ""), path
            assert result.notes.startswith("rwq: error: --yes=dev is for another server: "), path
            assert contents(foreign.raw) == filled, path


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


def test_a_dry_run_says_what_the_run_does_and_changes_nothing(rwq: Rwq, foreign: Foreign) -> None:
    lines = {path: line.split() for path, line in LINES.items() if has_option(path, "--dry-run")}
    # What `--dry-run` of a worker says is said of no run.
    del lines["work"]
    lines |= {"doctor": [*lines["doctor"], "--fix"], "undo": ["undo", "--yes"]}
    lines["add"] += ["--id-from", "line"]
    for path, words in lines.items():
        fill(foreign)
        if path == "undo":
            assert rwq("rm", "w1", "b1", "--yes").code == 0
        before = contents(foreign.raw)
        more = ("-o", "jsonl")
        dry = rwq(*words, *more, "--dry-run", stdin=STDIN.get(path, b""))
        assert contents(foreign.raw) == before, path
        done = rwq(*words, *more, stdin=STDIN.get(path, b""))
        assert contents(foreign.raw) != before, path
        assert (dry.code, _records(dry)) == (done.code, _records(done)), path
        assert _notes(dry) == _notes(done), path


def test_two_queues_are_an_error_where_one_is_taken(
    run: Run, foreign: Foreign, filled: dict[bytes, object]
) -> None:
    taking_one = set()
    for path in LINES:
        if "this command takes one queue; give -q once" in run(path, "-q", "a", "-q", "b").notes:
            taking_one.add(path)
            assert contents(foreign.raw) == filled, path
    assert taking_one >= {
        *("complete", "result", "touch", "release", "bury", "kick", "edit", "rm", "mv", "purge"),
        "show",
    }
    assert not taking_one & {
        *("ls", "leases", "stats", "check", "wait", "clean light", "clean deep", "doctor"),
        *("export", "lease", "work", "add"),
    }


@pytest.mark.parametrize("name", ["queue", "processing", "delayed", "buried"])
def test_a_structure_of_another_type_is_named_before_anything_is_written(
    rwq: Rwq, foreign: Foreign, name: str
) -> None:
    fill(foreign)
    foreign.raw.delete(f"jobs:{name}")
    foreign.raw.set(f"jobs:{name}", "not a list")
    before = contents(foreign.raw)
    for path in (
        *("add", "lease", "complete", "touch", "release", "bury", "kick", "edit", "rm", "mv"),
        *("purge", "clean light", "clean deep", "import"),
    ):
        result = rwq(*words_of(path), stdin=STDIN.get(path, b""))
        assert (result.code, result.text) == (69, ""), path
        assert f"jobs:{name} has the wrong type" in result.notes, path
        assert contents(foreign.raw) == before, path


def test_quiet_leaves_results_and_errors(run: Run) -> None:
    for path in (path for path in LINES if not path.startswith("context ")):
        result = run(path, "-Q")
        loud = run(path)
        assert result.code == loud.code, path
        lines = result.notes.splitlines()
        assert path.startswith("clean ") or all(line.startswith("rwq: ") for line in lines), path
        # What a clean did is its result.
        assert result.code in (1, 3) or path.startswith("clean ") or result.notes == "", path


def test_every_format_can_be_read_by_what_it_is_for(run: Run) -> None:
    for path, command in COMMANDS.items():
        if command.manual.record is None or path.startswith("context "):
            continue
        results = {each: run(path, "-o", each) for each in OutputFormat}
        refused = {each for each, result in results.items() if result.code == usage_code(path)}
        assert refused <= {OutputFormat.DATA, OutputFormat.IDS, OutputFormat.CSV}, path
        assert isinstance(results[OutputFormat.JSON].json, list | dict), path
        assert all(isinstance(each, dict) for each in results[OutputFormat.JSONL].jsonl), path
        rows = [*csv.reader(io.StringIO(results[OutputFormat.CSV].text))]
        assert len({len(row) for row in rows}) <= 1, path
        for output, result in results.items():
            assert b"\x1b" not in result.out + result.err, (path, output)
