"""The exit codes: each command ends with each of the codes that its help promises."""

import importlib
import json
import pkgutil
import re

import pytest

import rwq_cli
from rwq_cli.core.errors import RwqError
from rwq_cli.exit_codes import ExitStatus, exit_status_of
from tests.conftest import Foreign, contents
from tests.driver import Rwq
from tests.verbs import VERBS, fill

# Of rwq itself, with how the error begins.
USAGE = {
    **dict.fromkeys(("", "nothing", "-o"), ""),
    "-q jobs": "missing command; see rwq --help\n",
    **dict.fromkeys(("clean", "clean -q jobs"), "missing command; see rwq clean --help\n"),
}
CASES = [
    *((ExitStatus.OK, line, "") for line in ("--version", "--help")),
    *((ExitStatus.USAGE, line, error) for line, error in USAGE.items()),
    *(
        (status, line, (row.usage or {}).get(line, ""))
        for path, row in VERBS.items()
        if not row.elsewhere or row.usage
        for status, lines in row.lines().items()
        for line in lines
        if line
    ),
]


@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize(("status", "line", "error"), CASES, ids=[f"{c[0]}: {c[1]}" for c in CASES])
def test_a_line_ends_with_its_code(
    rwq: Rwq, foreign: Foreign, status: ExitStatus, line: str, error: str
) -> None:
    """Where nothing was to be done or an error ended it, nothing is changed."""
    variables = {"XDG_STATE_HOME": str(rwq.home), "EDITOR": "true"}
    fill(foreign)
    *lines_before, line = line.split("; ")
    line, _, stdin = line.partition(" < ")
    if "{" in stdin:
        export = rwq("export").text
        header = export.partition("\n")[0]
        stdin = stdin.replace("{export}", export).replace("{header}", header)
    codes = [rwq(*words.split(), variables=variables).code for words in lines_before]
    assert codes == [0] * len(lines_before)
    keys = contents(foreign.raw)
    own_stdin = VERBS[line.split()[0]].stdin if line == "import -" else b""
    result = rwq(*line.split(), stdin=stdin.encode() or own_stdin, variables=variables)
    assert result.code == status
    if status in (ExitStatus.NO, ExitStatus.USAGE):
        assert contents(foreign.raw) == keys
    if status is ExitStatus.USAGE and line not in ("", "-o"):
        assert result.text == ""
        assert result.notes.startswith(f"rwq: error: {error}")
        assert re.fullmatch(r"rwq: error: .*[^.]; .*\S.*\n", result.notes)
        record = json.loads(rwq("-o", "json", *line.split(), stdin=stdin.encode()).err)
        assert record.keys() >= {"error", "code", "hint"}


def test_the_numbers_of_the_codes_are_fixed() -> None:
    assert {status.name: int(status) for status in ExitStatus} == {
        "OK": 0,
        "NO": 1,
        "USAGE": 2,
        "PARTIAL": 3,
        "SERVER": 69,
        "FAULT": 70,
        "INTERRUPTED": 130,
        "TERMINATED": 143,
    }


def errors_of(base: type[RwqError]) -> set[type[RwqError]]:
    """A class of errors and all that are derived from it."""
    return {base}.union(*(errors_of(kind) for kind in base.__subclasses__()))


def test_each_error_has_its_exit_code() -> None:
    seen: dict[ExitStatus, set[str]] = {status: set() for status in ExitStatus}
    for module in pkgutil.walk_packages(rwq_cli.__path__, "rwq_cli."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for kind in errors_of(RwqError):
        seen[exit_status_of(kind.__new__(kind))].add(kind.code)
    assert seen == {
        ExitStatus.OK: set(),
        ExitStatus.NO: {
            *("error", "declined", "nothing-to-undo", "undo-file-busy"),
            *("editor", "no-context", "lease-lost"),
        },
        ExitStatus.USAGE: {
            *("invalid-argument", "usage", "context", "read-only-context", "cannot-run"),
        },
        ExitStatus.PARTIAL: {"output"},
        ExitStatus.SERVER: {
            *("server-error", "unreachable", "connection-lost", "lock-lost"),
            "data-lost",
            "authentication-failed",
            "sentinel-authentication-failed",
            *("permission-denied", "wrong-type", "out-of-memory", "read-only", "loading"),
            *("local-server", "busy", "unavailable", "wrong-node", "script-error"),
            "password-command",
        },
        ExitStatus.FAULT: {"bug", "undo-file"},
        ExitStatus.INTERRUPTED: set(),
        ExitStatus.TERMINATED: set(),
    }
