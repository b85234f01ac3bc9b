"""How an error looks: one line, what happened and what to do, no traceback."""

import errno
import json
import shutil
import sys
import zipapp
from pathlib import Path

import pytest

import rwq_cli
from tests.driver import TIMEOUT_S, Rwq


@pytest.fixture(autouse=True)
def one_item(rwq: Rwq) -> None:
    """A queue, which no failure may change."""
    rwq("add", "x", "--id", "a")


def test_an_error_as_a_line_and_as_an_object(rwq: Rwq) -> None:
    words = ("ls", "-u", "redis://127.0.0.1:1/0")
    what = "cannot reach redis://127.0.0.1:1/0: connection refused"
    hint = "check -u or RWQ_URL, and that the server runs"
    assert rwq(*words).as_tuple() == (69, "", f"rwq: error: {what}; {hint}\n")
    record = f'{{"error": "{what}", "code": "unreachable", "hint": "{hint}"}}\n'
    assert rwq(*words, "-o", "json").as_tuple() == (69, "", record)


@pytest.mark.parametrize(
    "line",
    [
        *("-o json ls --what", "-ojson ls --what", "--output=jsonl ls --what"),
        *("ls --output json --what", "ls --what -o table -o json", "ls --what -vo json"),
    ],
)
def test_usage_errors_are_json_where_asked_for(rwq: Rwq, line: str) -> None:
    assert json.loads(rwq(*line.split()).err)["code"] == "usage"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("x"), "this is a bug in rwq: ZeroDivisionError: x; --debug shows the"),
        (MemoryError(), "this machine is out of resources: no memory left"),
        (RuntimeError("can't start new thread"), "this machine is out of resources: can't start"),
        (OSError(errno.EMFILE, "too many"), "this machine is out of resources: [Errno 24] too"),
    ],
)
def test_a_fault_is_not_taken_for_an_answer(
    rwq: Rwq, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def fail(_server: object) -> None:
        raise error

    monkeypatch.setattr("rwq_cli.core.server.address.connect", fail)
    result = rwq("lease")
    assert (result.code, result.text) == (70, "")
    assert result.notes.startswith(f"rwq: error: {said}")
    assert json.loads(rwq("lease", "-o", "json").err)["code"] == "bug"


def test_control_characters_in_errors_are_escaped(rwq: Rwq) -> None:
    result = rwq("lease", "--for", "\x1b[2J\u202e5m")
    assert (result.code, result.notes) == (
        2,
        "rwq: error: not a duration: '\\x1b[2J\\u202e5m'; "
        "write it like 500ms, 30s, 5m, 1h30m or 2d\n",
    )
    result = rwq("ls", "-u", "http://\x1b[2J\n\x9b")
    assert result.notes.count("\n") == 1
    assert result.notes.rstrip("\n").isprintable()


@pytest.mark.parametrize(
    ("line", "code"), [("ls -u redis://127.0.0.1:1/0", 69), ("ls --what", 2), ("show gone", 1)]
)
def test_debug_shows_the_traceback_with_the_code(rwq: Rwq, line: str, code: int) -> None:
    result = rwq(*line.split(), "--debug")
    assert (result.code, b"Traceback" in result.err) == (code, code > 1)


def test_what_cannot_start_is_not_an_answer(rwq: Rwq) -> None:
    broken = "import rwq_cli.__main__ as it, rwq_cli.cli.program as program; program.main = None"
    process = rwq.start("lease", command=(sys.executable, "-c", f"{broken}; it.main()"))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 70
    assert err.startswith(b"rwq: error: cannot start: TypeError")


@pytest.mark.parametrize("name", ["redis", "queue"])
def test_a_file_that_hides_a_module_is_named(rwq: Rwq, tmp_path: Path, name: str) -> None:
    """A library's, or Python's own."""
    (tmp_path / f"{name}.py").write_text("")
    process = rwq.start("stats", variables={"PYTHONPATH": str(tmp_path)})
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert err.decode().startswith(f"rwq: error: {tmp_path}/{name}.py hides the module {name}: ")
    assert process.returncode == 70


def test_the_package_works_from_an_archive(rwq: Rwq, tmp_path: Path) -> None:
    package = tmp_path / "files" / "rwq_cli"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(rwq_cli.__file__).parent, package, ignore=ignored)
    archive = tmp_path / "rwq.pyz"
    zipapp.create_archive(package.parent, archive, main="rwq_cli.__main__:main")
    lines = (["context", "check"], ["work", "--drain", "--", "true"])
    processes = [rwq.start(*line, command=(sys.executable, str(archive))) for line in lines]
    errors = [process.communicate(timeout=TIMEOUT_S)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], errors
