"""The topics: made from the tables that the commands use, and shown on any screen."""

from rwq_cli.core.model import State
from rwq_cli.exit_codes import ExitStatus, MonitoringStatus
from rwq_cli.help.topics import RECIPES, TOPICS
from rwq_cli.views.meanings import STATES
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
