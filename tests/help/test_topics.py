"""The topics: made from the tables that the commands use, and shown on any screen."""

import ast
import re
from pathlib import Path

import pytest

import rwq_cli
from rwq_cli.core.model import State
from rwq_cli.exit_codes import ExitStatus, MonitoringStatus
from rwq_cli.help.recipes import RECIPES
from rwq_cli.help.topics import SUMMARIES, Topic
from rwq_cli.help.variables import VARIABLES
from rwq_cli.views.states import STATES
from tests.driver import Rwq


def unwrapped(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.split())


@pytest.mark.parametrize("topic", Topic)
def test_a_topic_is_shown_within_80_columns_without_markup(rwq: Rwq, topic: Topic) -> None:
    code, screen = rwq.on_screen("help", topic, columns=80)
    assert code == 0
    assert screen.decode().startswith(f"{SUMMARIES[topic]}.\n\n")
    assert b"`" not in screen
    code_lines = {f"    {line}" for recipe in RECIPES for line in recipe.commands}
    lines = [line for line in screen.decode().splitlines() if line not in code_lines]
    assert max(map(len, lines)) <= 80


def test_every_state_is_explained(rwq: Rwq) -> None:
    assert list(STATES) == list(State)
    text = unwrapped(rwq("help", "states").text)
    for state, known in STATES.items():
        assert f" {state} {known.meaning} " in text


def test_every_exit_code_is_explained(rwq: Rwq) -> None:
    text = unwrapped(rwq("help", "exit-codes").text)
    for code in (*ExitStatus, *MonitoringStatus):
        assert f" {int(code)} {code.meaning}" in text


def variables_read(source: str) -> set[str]:
    """The environment variables that a module reads: what it looks up in a mapping named
    `variables` or `environ` (if not by a constant, it may be any constant of a tuple), and what is
    named like a variable of rwq or XDG."""
    tree = ast.parse(source)
    looked_up: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            looked_up += node.args[:1] if is_environment(node.func.value) else []
        elif isinstance(node, ast.Subscript) and is_environment(node.value):
            looked_up.append(node.slice)
        elif isinstance(node, ast.Compare) and is_environment(node.comparators[0]):
            looked_up.append(node.left)
        elif isinstance(node, ast.Constant) and re.match("(RWQ|XDG)_", str(node.value)):
            looked_up.append(node)
    if not all(isinstance(one, ast.Constant) for one in looked_up):
        for node in ast.walk(tree):
            looked_up += node.elts if isinstance(node, ast.Tuple) else []
    values = {one.value for one in looked_up if isinstance(one, ast.Constant)}
    return {str(value) for value in values if re.fullmatch(r"[A-Z]([A-Z_]*[A-Z])?", str(value))}


def is_environment(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    return name.lstrip("_") in ("variables", "environ")


def test_every_variable_that_the_code_reads_is_listed_and_no_other() -> None:
    root = Path(rwq_cli.__file__).parent
    read = set()
    for path in root.rglob("*.py"):
        if path != root / "help" / "variables.py":
            read |= variables_read(path.read_text("utf-8"))
    listed = {name for rows in VARIABLES.values() for names in rows for name in names.split(", ")}
    assert read == listed, "see rwq_cli/help/variables.py"


def test_the_variables_of_a_module_are_found() -> None:
    source = (
        "variables.get('A'); self._environ['B']; 'C' in environment.variables; other.get('D');"
        "f(('E', 'lower')); f('RWQ_F')"
    )
    assert variables_read(source) == {"A", "B", "C", "RWQ_F"}
    assert variables_read(f"{source}; environ.get(name)") == {"A", "B", "C", "RWQ_F", "E"}
