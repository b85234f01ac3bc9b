"""The recipes: each runs as it stands, and does what it says."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from rwq_cli.help.topics import RECIPES, Recipe
from tests.conftest import Foreign
from tests.driver import Rwq
from tests.item_cases import real_items


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


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.title)
def test_a_recipe_runs_as_it_stands(rwq: Rwq, foreign: Foreign, recipe: Recipe) -> None:
    case, raw = CASES[recipe.title], foreign.raw
    case.set_up(foreign)
    before = real_items(raw, foreign)
    result = rwq.shell("\n".join([case.before, *recipe.commands]), {"RWQ_QUEUE": ""})
    assert (result.code, "error:" in result.notes) == (0, False), result.notes
    for text in case.said:
        assert text in f"\n{result.notes}\n{result.text}"
    waiting = raw.lrange("jobs:queue", 0, -1)[::-1]
    assert [item_id.decode() for item_id in waiting] == case.waiting.split()
    after = real_items(raw, foreign)
    assert {item_id: before[item_id] for item_id in after} == after
    if recipe.title == "Copy a queue":
        assert real_items(raw, Foreign(raw, b"jobs-copy")) == before
        assert raw.dump("jobs-copy:queue") == raw.dump("jobs:queue")
