"""Every option reaches what it is for: with it, something is called otherwise, or said."""

import re
from collections.abc import Callable
from shutil import rmtree

import pytest

from tests.conftest import Foreign
from tests.driver import Result, Rwq, configure
from tests.kinds.lines import OPTION_LINES, OptionLine
from tests.kinds.spy import Call, spying
from tests.verbs import VERBS, fill

# What reaches nothing, and why.
REACHES_NOTHING = {
    **dict.fromkeys(("wait --until-empty", "export --all"), "it says what is the default"),
    "history --since": "what was written before: tests/commands/test_history.py",
    "export --null": "IDs on stdin: tests/input",
    **{
        f"tail --{name}": "what happens meanwhile: tests/commands/test_tail.py"
        for name in ("all-events", "limit", "timeout", "state")
    },
}


FILES = {
    "file": "one\ntwo\n",
    "other": "three\n",
    "bad": '{"data": 1}\nx\n{"data": 2}\n',
    "bad_export": '{"rwq_export": 1, "queue": "jobs"}\nx\n{"id": "i1", "data": "x"}\n',
    "tasks/none": "",
}
GUARDED = """
[contexts.guarded]
url = "{url}"
protect = "type"
"""
CONTEXTS = """
[contexts.dev]
url = "{url}"
queue = "q"
[contexts.elsewhere]
url = "{url}"
"""


class Runner:
    """Runs lines on the queue of the registry; the first pause ends one. For `undo`, there is
    something to undo."""

    def __init__(self, rwq: Rwq, foreign: Foreign) -> None:
        self._rwq, self._foreign = rwq, foreign
        self._names = {name: str(rwq.home / name) for name in (*FILES, "tasks", "export")}
        self._names |= {"home": str(rwq.home), "url": rwq.variables["RWQ_URL"]}
        (rwq.home / "tasks").mkdir()
        for name, text in FILES.items():
            (rwq.home / name).write_text(text)
        fill(foreign)
        (rwq.home / "export").write_bytes(rwq("export").out)

    def __call__(self, path: str, line: str) -> Result:
        rmtree(self._rwq.home / ".local", ignore_errors=True)
        configure(self._rwq.home, "")
        fill(self._foreign)
        if path == "undo":
            assert self._rwq("rm", "w3", "--yes").code == 0
        contexts = GUARDED if "-c guarded" in line else CONTEXTS
        configure(self._rwq.home, contexts.format(**self._names))
        result = self._rwq(*line.format(**self._names).split(), stdin=VERBS[path].stdin)
        assert b"this is a bug" not in result.err
        return result

    def calls(self, path: str, line: str) -> set[Call]:
        with spying() as calls:
            self(path, line)
        return calls

    def differ(self, path: str, line: str, other: str) -> bool:
        """Whether another line, which is no error, ends, says or calls something else."""
        without, result = self(path, line), self(path, other)
        assert not re.search("rwq: error|RWQ UNKNOWN", result.notes + result.text)
        if result.code != without.code or (result != without == self(path, line)):
            return True
        first, second = (self.calls(path, line) for _ in range(2))
        # What differs between two runs of one line says nothing.
        noise = {call[:2] for call in first ^ second}
        return any(call[:2] not in noise for call in self.calls(path, other) ^ first)


@pytest.mark.parametrize(
    "case",
    [
        # Of an option of several verbs, that of one is enough where all run in CI.
        pytest.param(
            case,
            id=f"{case.path} {case.option}",
            marks=[pytest.mark.ci]
            * any(case.option == before.option for before in OPTION_LINES[:at]),
        )
        for at, case in enumerate(OPTION_LINES)
    ],
)
def test_an_option_reaches_what_it_is_for(
    rwq: Rwq, foreign: Foreign, pauses: Callable[..., None], case: OptionLine
) -> None:
    if f"{case.path} {case.option}" in REACHES_NOTHING:
        return
    pauses()
    assert Runner(rwq, foreign).differ(case.path, case.line, case.with_option())
