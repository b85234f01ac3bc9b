"""What `rwq` alone shows."""

import re
import shlex

import pytest

from rwq_cli.help.overview import OVERVIEW
from tests.conftest import Foreign
from tests.driver import Rwq

COMMANDS = re.findall(r"^(?:\S.{12}|.{14})(rwq .*?)  ", OVERVIEW, re.MULTILINE)


def test_it_fits_on_a_screen_of_20_lines_and_80_columns() -> None:
    lines = OVERVIEW.splitlines()
    assert len(lines) <= 20
    assert max(map(len, lines)) <= 80


@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_in_the_overview_works(rwq: Rwq, foreign: Foreign, command: str) -> None:
    foreign.waiting(b"1", b"2")
    foreign.raw.set(foreign.keys.item(b"ID"), b"data")
    foreign.raw.lpush(foreign.keys.main, b"ID")
    if "undo" in command:
        assert rwq("rm", "-q", "jobs", "--yes", "1").code == 0
    result = rwq(*shlex.split(command)[1:], variables={"RWQ_QUEUE": ""})
    assert (result.code, "error:" in result.notes) == (0, False), result.notes


def test_it_names_the_main_commands() -> None:
    assert len(COMMANDS) == 14
