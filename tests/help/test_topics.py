"""The help of a command, what `rwq` alone shows, and the topics.

Those are made from the tables that the commands use, and shown on any screen.
"""

import shlex

import pytest

from rwq_cli.cli.options import global_options
from rwq_cli.core.model import State
from rwq_cli.exit_codes import ExitStatus, MonitoringStatus
from rwq_cli.help.topics import HINTS, RECIPES, TOPICS, Hint, overview
from rwq_cli.views.meanings import STATES
from tests.conftest import Foreign
from tests.driver import Rwq


def unwrapped(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.split())


def test_every_topic_is_shown_within_80_columns_without_markup(rwq: Rwq) -> None:
    code_lines = {f"    {line}" for recipe in RECIPES for line in recipe.commands}
    for topic in TOPICS:
        code, screen = rwq.on_screen("help", topic, columns=80)
        text = screen.decode()
        assert (code, "`" in text) == (0, False)
        assert text.startswith(f"{TOPICS[topic]}.\n\n")
        assert max(len(line) for line in text.splitlines() if line not in code_lines) <= 80


def test_every_state_is_explained(rwq: Rwq) -> None:
    assert list(STATES) == list(State)
    text = unwrapped(rwq("help", "states").text)
    for state, known in STATES.items():
        assert f" {state} {known.meaning} " in text


def test_every_exit_code_is_explained(rwq: Rwq) -> None:
    text = unwrapped(rwq("help", "exit-codes").text)
    for code in (*ExitStatus, *MonitoringStatus):
        assert f" {int(code)} {code.meaning}" in text


def test_the_overview_is_shown_without_a_command(rwq: Rwq) -> None:
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


@pytest.mark.parametrize("words", [("ls",), ("clean",), ("clean", "light"), ("help",)])
def test_help_shows_the_help_of_a_command(bare_rwq: Rwq, words: tuple[str, ...]) -> None:
    assert bare_rwq("help", *words).as_tuple() == bare_rwq(*words, "--help").as_tuple()


def test_the_common_options_are_a_topic(bare_rwq: Rwq) -> None:
    text = bare_rwq("help", "options").text
    for option in global_options():
        assert f"\n  {', '.join(option.opts)}" in text
