"""Every option that takes a duration, with 0: the command ends at once, or refuses it."""

from pathlib import Path

import pytest

from rwq_cli.cli.options import COMMON_NAMES
from rwq_cli.core.clock import Clock
from rwq_cli.core.server.push_waiter import PushWaiter
from tests.conftest import Foreign
from tests.driver import Rwq
from tests.kinds.lines import OPTION_LINES, OptionLine
from tests.verbs import COMMANDS, VERBS

WAITS_MAX = 5
# Where an option ends a wait: on an empty queue, with what makes it wait.
WAITING = {
    "lease --timeout": "lease -q none --wait",
    "result --timeout": "result gone --wait",
    "wait --timeout": "wait --id w1",
    "work --idle": "work -q none -- true",
    "add --reconnect": "add x --id k",
}
# These run until they are stopped: an interval of 0 is refused.
INTERVALS = {"--every", "--watch", "--deep-every", "--clean"}
OWN = [
    case._replace(
        line=WAITING.get(f"{case.path} {case.option}", case.line), words=f"{case.option} 0"
    )
    for case in OPTION_LINES
    if f"{case.option} 7m" == case.words
]
EVERYWHERE = [
    OptionLine("ls", parameter.opts[-1], "ls", f"{parameter.opts[-1]} 0")
    for parameter in COMMANDS["ls"].command.params
    if parameter.name in COMMON_NAMES and parameter.metavar == "DUR"
]


@pytest.mark.parametrize("case", [*OWN, *EVERYWHERE], ids=lambda case: f"{case.path} {case.option}")
def test_a_duration_of_0_ends_at_once_or_is_refused(
    rwq: Rwq, foreign: Foreign, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, case: OptionLine
) -> None:
    foreign.waiting(b"w1", b"w2")
    (tmp_path / "file").write_text("one\n")
    waits = 0

    def wait(_self: object, _seconds: float, **_: bool) -> bool:
        nonlocal waits
        waits += 1
        if waits > WAITS_MAX:
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(Clock, "sleep", wait)
    monkeypatch.setattr(PushWaiter, "wait", wait)
    line = case.with_option().format(file=tmp_path / "file", url=rwq.variables["RWQ_URL"])
    result = rwq(*line.split(), stdin=VERBS[case.path].stdin)
    assert result.code != 130, "it goes on"
    if case.option in INTERVALS:
        assert result.code == 2
