"""What `rwq` alone shows."""

import shlex

import pytest

from rwq_cli.help.topics import HINTS, Hint, overview
from tests.conftest import Foreign
from tests.driver import Rwq


def test_it_is_shown_without_a_command(rwq: Rwq) -> None:
    """On stderr with exit 2: a script that runs this has lost its command."""
    assert rwq(variables={"COLUMNS": "80"}).as_tuple() == (2, "", f"{overview(80)}\n")


@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize("hint", HINTS, ids=lambda hint: hint.command)
def test_every_command_in_the_overview_works(rwq: Rwq, foreign: Foreign, hint: Hint) -> None:
    foreign.waiting(b"1", b"2", b"ID")
    if "undo" in hint.command:
        assert rwq("rm", "-q", "jobs", "--yes", "1").code == 0
    # On a terminal, it asks.
    yes = ["--yes"] if "undo" in hint.command else []
    result = rwq(*shlex.split(hint.command)[1:], *yes, variables={"RWQ_QUEUE": ""})
    assert (result.code, "error:" in result.notes) == (0, False), result.notes
