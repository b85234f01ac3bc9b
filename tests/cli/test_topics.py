"""The help of a command, what `rwq` alone shows, the topics, and the recipes.

Those are made from the tables that the commands use, and shown on any screen; each recipe
runs as it stands.
"""

import re
import shlex
from collections.abc import Callable
from typing import NamedTuple

import pytest

from rwq_cli.cli.options import make_common_options
from rwq_cli.core.model import State
from rwq_cli.exit_codes import ExitStatus, MonitoringStatus
from rwq_cli.topics import OVERVIEW, RECIPES, TOPICS, Recipe
from rwq_cli.views.meanings import STATES
from tests.conftest import Foreign
from tests.driver import Rwq
from tests.item_cases import real_items


def unwrapped(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.split())


@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_has_80_columns_and_no_markup(rwq: Rwq, topic: str) -> None:
    code, screen = rwq.on_screen("help", topic, columns=80)
    text = screen.decode()
    assert (code, "`" in text) == (0, False)
    assert text.startswith(TOPICS[topic][:40])
    assert max(map(len, text.splitlines())) <= 80


def test_every_state_is_explained(rwq: Rwq) -> None:
    assert list(STATES) == list(State)
    text = unwrapped(rwq("help", "states").text)
    sentences = [f" {state} {entry.meaning} " for state, entry in STATES.items()]
    assert [sentence for sentence in sentences if sentence not in text] == []


def test_every_exit_code_is_explained(rwq: Rwq) -> None:
    text = unwrapped(rwq("help", "exit-codes").text)
    sentences = [f" {int(code)} {code.meaning}" for code in (*ExitStatus, *MonitoringStatus)]
    assert [sentence for sentence in sentences if sentence not in text] == []


def test_the_overview_is_shown_without_a_command(rwq: Rwq) -> None:
    """On stderr with exit 2: a script that runs this has lost its command."""
    assert rwq().as_tuple() == (2, "", OVERVIEW)


@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize("hint", re.findall(r"rwq .*?(?=  )", OVERVIEW))
def test_every_command_in_the_overview_works(rwq: Rwq, foreign: Foreign, hint: str) -> None:
    foreign.waiting(b"1", b"2", b"ID")
    if "undo" in hint:
        assert rwq("rm", "-q", "jobs", "--yes", "1").code == 0
    # On a terminal, it asks.
    yes = ["--yes"] if "undo" in hint else []
    result = rwq(*shlex.split(hint)[1:], *yes, variables={"RWQ_QUEUE": ""})
    assert (result.code, "error:" in result.notes) == (0, False), result.notes


@pytest.mark.parametrize("words", [("ls",), ("clean",), ("clean", "light"), ("help",)])
def test_help_shows_the_help_of_a_command(bare_rwq: Rwq, words: tuple[str, ...]) -> None:
    assert bare_rwq("help", *words).as_tuple() == bare_rwq(*words, "--help").as_tuple()


def test_the_common_options_are_a_topic(bare_rwq: Rwq) -> None:
    text = bare_rwq("help", "options").text
    heads = [f"\n  {', '.join(option.opts)}" for option in make_common_options()]
    assert [head for head in heads if head not in text] == []


class Case(NamedTuple):
    """What a recipe needs, `before` by a shell script, and what it must come to."""

    set_up: Callable[[Foreign], object]
    said: tuple[str, ...]
    waiting: str
    before: str = ""


def program(name: str, script: str) -> str:
    """A shell script that creates a program in the working directory."""
    return f"printf '#!/bin/sh\\n{script}\\n' > {name}; chmod +x {name}; "


def _unhealthy(there: Foreign) -> None:
    there.waiting(b"1")
    there.abandoned(b"2")
    there.data(b"3")


def _dead_machine(there: Foreign) -> None:
    there.leased(b"1", holder=b"rwq:ann@deadhost:1")
    there.leased(b"2", holder=b"rwq:ann@otherhost:1")


def _json(there: Foreign) -> None:
    there.waiting(b"1", b"4f2a9c", b"2")
    there.raw.set(there.keys.item(b"4f2a9c"), b'{"user": {"id": 42}}')


CASES = {
    "Process a queue in a shell script": Case(
        lambda there: there.waiting(b"1", b"2"),
        *(("data of 1\ndata of 2\n",), "", program("work", "cat; echo")),
    ),
    "Keep a queue healthy with cron": Case(_unhealthy, ("returned 1", "\nRWQ OK - jobs"), "1 2 3"),
    "Find out why an item is stuck, and fix it": Case(
        lambda there: there.abandoned(b"4f2a9c"), ("abandoned",), "4f2a9c"
    ),
    "Take back what rwq leased on a dead machine": Case(_dead_machine, (), "1"),
    "Set poison items aside": Case(
        lambda there: there.waiting(b"1", b"4f2a9c"), ("bad address",), "1 4f2a9c"
    ),
    "Find an item by its data, and make it the next one": Case(_json, ("4f2a9c",), "4f2a9c 1 2"),
    "Remove items, and restore them": Case(_json, ("\nremoved 1", "restored 1"), "4f2a9c 1 2"),
    "Wait until a batch is done": Case(
        lambda _there: None,
        ("published\n",),
        "",
        program("publish", "echo published")
        + "printf 'a\\nb\\n' > batch.txt; "
        + "(rwq lease -q jobs --wait -n 2 -o ids | rwq complete -q jobs -) 2>&1 >worker.log &",
    ),
    "Ask for something, and wait for the result": Case(
        lambda _there: None,
        ("the answer\n",),
        "",
        "(id=$(rwq lease -q jobs --wait -o ids) && echo the answer | "
        "rwq complete -q jobs --result - -- $id) >worker.log 2>&1 &",
    ),
    "Copy a queue": Case(_json, (), "1 4f2a9c 2"),
}


def test_every_recipe_is_tested() -> None:
    assert [recipe.title for recipe in RECIPES] == list(CASES)
    assert len(RECIPES) == 10


@pytest.mark.ci
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.title)
def test_a_recipe_runs_as_it_stands(rwq: Rwq, foreign: Foreign, recipe: Recipe) -> None:
    case, raw = CASES[recipe.title], foreign.raw
    case.set_up(foreign)
    before = real_items(raw, foreign)
    result = rwq.shell("\n".join([case.before, *recipe.commands]), {"RWQ_QUEUE": ""})
    assert (result.code, "error:" in result.notes) == (0, False), result.notes
    output = f"\n{result.notes}\n{result.text}"
    assert [text for text in case.said if text not in output] == [], output
    waiting = raw.lrange("jobs:queue", 0, -1)[::-1]
    assert [item_id.decode() for item_id in waiting] == case.waiting.split()
    after = real_items(raw, foreign)
    assert {item_id: before[item_id] for item_id in after} == after
    if recipe.title == "Copy a queue":
        assert real_items(raw, Foreign(raw, b"jobs-copy")) == before
        assert raw.dump("jobs-copy:queue") == raw.dump("jobs:queue")
