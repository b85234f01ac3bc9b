"""The recipes: each runs as it stands, and does what it says."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import redis

from rwq_cli.help.recipes import RECIPES, Recipe
from tests.conftest import Foreign
from tests.driver import Result, Rwq


class Case(NamedTuple):
    """What a recipe needs, and what it must come to.

    Attributes:
        before: A shell script: the files and processes that the recipe names.
        set_up: Writes the items that it names.
        check: Looks at what came of it.
    """

    before: str
    set_up: Callable[[Foreign], object]
    check: Callable[[redis.Redis, Result], Any]


def program(name: str, script: str) -> str:
    """A shell script that creates a program in the working directory."""
    return f"printf '#!/bin/sh\\n{script}\\n' > {name}; chmod +x {name}; "


def with_data(foreign: Foreign, item_id: bytes, data: bytes) -> None:
    foreign.raw.set(foreign.keys.item(item_id), data)


def worked_off(raw: redis.Redis, result: Result) -> None:
    assert result.text == "data of 1\ndata of 2\n"
    assert raw.keys("jobs:*") == []


def healthy(raw: redis.Redis, result: Result) -> None:
    # Only what was done is said, because cron mails it.
    assert "returned 1" in result.notes
    assert result.text.splitlines()[-1].startswith("RWQ OK - jobs")
    assert set(raw.lrange("jobs:queue", 0, -1)) == {b"1", b"2", b"3"}


def set_up_unhealthy(foreign: Foreign) -> None:
    foreign.waiting(b"1")
    foreign.abandoned(b"2")
    foreign.data(b"3")


def fixed(raw: redis.Redis, result: Result) -> None:
    assert "abandoned" in result.text
    assert raw.lrange("jobs:queue", 0, -1) == [b"4f2a9c"]


def set_up_dead_machine(foreign: Foreign) -> None:
    foreign.leased(b"1", holder=b"rwq:ann@deadhost:1")
    foreign.leased(b"2", holder=b"rwq:ann@otherhost:1")


def taken_back(raw: redis.Redis, _result: Result) -> None:
    assert raw.lrange("jobs:queue", 0, -1) == [b"1"]
    assert raw.lrange("jobs:processing", 0, -1) == [b"2"]


def kicked(raw: redis.Redis, result: Result) -> None:
    assert "bad address" in result.text
    assert raw.lrange("jobs:queue", 0, -1) == [b"4f2a9c", b"1"]


def set_up_data(foreign: Foreign) -> None:
    foreign.waiting(b"1", b"4f2a9c", b"2")
    with_data(foreign, b"4f2a9c", b'{"user": {"id": 42}}')


def comes_next(raw: redis.Redis, result: Result) -> None:
    assert "4f2a9c" in result.text
    assert raw.lrange("jobs:queue", -1, -1) == [b"4f2a9c"]


def restored(raw: redis.Redis, result: Result) -> None:
    assert [line.split(";")[0] for line in result.notes.splitlines() if "removed" in line]
    assert "restored 1" in result.notes
    assert raw.get("jobs:item:4f2a9c") == b'{"user": {"id": 42}}'
    assert raw.llen("jobs:queue") == 3


def published(raw: redis.Redis, result: Result) -> None:
    assert result.text.splitlines()[-1] == "published"
    assert raw.keys("jobs:item:*") == []


def answered(_raw: redis.Redis, result: Result) -> None:
    assert result.text == "the answer\n"


def copied(raw: redis.Redis, _result: Result) -> None:
    for key in ("queue", "item:1", "item:4f2a9c"):
        assert raw.dump(f"jobs-copy:{key}") == raw.dump(f"jobs:{key}")


CASES = {
    "Process a queue in a shell script": Case(
        program("work", "cat; echo"), lambda foreign: foreign.waiting(b"1", b"2"), worked_off
    ),
    "Keep a queue healthy with cron": Case("", set_up_unhealthy, healthy),
    "Find out why an item is stuck, and fix it": Case(
        "", lambda foreign: foreign.abandoned(b"4f2a9c"), fixed
    ),
    "Take back what rwq leased on a dead machine": Case("", set_up_dead_machine, taken_back),
    "Set poison items aside": Case("", lambda foreign: foreign.waiting(b"1", b"4f2a9c"), kicked),
    "Find an item by its data, and make it the next one": Case("", set_up_data, comes_next),
    "Remove items, and restore them": Case("", set_up_data, restored),
    "Wait until a batch is done": Case(
        program("publish", "echo published")
        + "printf 'a\\nb\\n' > batch.txt; "
        + "(rwq lease -q jobs --wait -n 2 -o ids | rwq complete -q jobs -) 2>&1 >worker.log &",
        lambda _foreign: None,
        published,
    ),
    "Ask for something, and wait for the result": Case(
        "(id=$(rwq lease -q jobs --wait -o ids) && echo the answer | "
        "rwq complete -q jobs --result - -- $id) >worker.log 2>&1 &",
        lambda _foreign: None,
        answered,
    ),
    "Copy a queue": Case("", set_up_data, copied),
}


def test_every_recipe_is_tested() -> None:
    assert [recipe.title for recipe in RECIPES] == list(CASES)
    assert len(RECIPES) == 10


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.title)
def test_a_recipe_runs_as_it_stands(rwq: Rwq, foreign: Foreign, recipe: Recipe) -> None:
    case = CASES[recipe.title]
    case.set_up(foreign)
    commands = "\n".join(recipe.commands)
    result = rwq.shell(f"{case.before}\n{commands}", {"RWQ_QUEUE": ""})
    assert (result.code, "error:" in result.notes) == (0, False), result.notes
    case.check(foreign.raw, result)
