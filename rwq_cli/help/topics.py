"""The topics of `rwq help`, made from the tables that the commands themselves use."""

import textwrap
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, NamedTuple

from rwq_cli.exit_codes import ExitStatus, MonitoringStatus


class Hint(NamedTuple):
    purpose: str
    command: str
    text: str


# In the order in which most people need them.
HINTS = (
    Hint("See a queue", "rwq queues", "the queues of this server"),
    Hint("", "rwq stats -q jobs", "how many items in which state"),
    Hint("", "rwq ls -q jobs", "the waiting items, next first"),
    Hint("", "rwq leases -q jobs", "who holds what, and for how long"),
    Hint("Take an item", "rwq lease -q jobs --for 10m", "print it; the lease lasts 10 min"),
    Hint("", "rwq complete -q jobs ID", "finish it"),
    Hint("", "rwq release -q jobs ID", "return it to the queue"),
    Hint("Clean", "rwq clean light -q jobs", "return what dead workers held"),
    Hint("", "rwq clean deep -q jobs", "also what is in no list"),
    Hint("Find out why", "rwq show -q jobs ID", "an item, and what happens next"),
    Hint("", "rwq doctor -q jobs", "what is wrong with the queue"),
    Hint("Repair", "rwq doctor -q jobs --fix", "repair what it can automatically"),
    Hint("", "rwq undo", "restore what was removed last"),
    Hint("Add", "rwq add -q jobs DATA", "or -f FILE: one item per line"),
)
_CLOSING = (
    "The queue is -q NAME or RWQ_QUEUE, the server -u URL, -c CONTEXT or RWQ_URL.",
    "rwq --help lists all commands, and rwq COMMAND --help explains one.",
    "rwq help recipes has whole tasks, and rwq demo a tour on a throwaway server.",
)


def overview(columns: int) -> str:
    first, second = (max(map(len, column)) for column in list(zip(*HINTS, strict=True))[:2])
    lines = [f"{one.purpose:{first}}  {one.command:{second}}  {one.text}" for one in HINTS]
    if max(map(len, lines)) > columns:
        lines = [f"{one.purpose:{first}}  {one.command}" for one in HINTS]
    closing = [line for text in _CLOSING for line in textwrap.wrap(text, columns)]
    return "\n".join(("Usage: rwq [OPTIONS] COMMAND [ARGS]...", "", *lines, "", *closing))


class Topic(StrEnum):
    OPTIONS = "options"
    STATES = "states"
    EXIT_CODES = "exit-codes"
    ENVIRONMENT = "environment"
    RECIPES = "recipes"


SUMMARIES = {
    Topic.OPTIONS: "The options of every command",
    Topic.STATES: "The states of an item, and what happens next",
    Topic.EXIT_CODES: "What the exit codes mean",
    Topic.ENVIRONMENT: "The environment variables that rwq reads",
    Topic.RECIPES: "Ten tasks with the commands for them",
}


def write_topic(topic: Topic, formatter: Any, options: Iterable[tuple[str, str]]) -> None:
    formatter.write_text(f"{SUMMARIES[topic]}.")
    formatter.write_paragraph()
    match topic:
        case Topic.OPTIONS:
            formatter.write_text("They are accepted before the command's name or after it.")
            _write_rows(formatter, "Options", options)
        case Topic.STATES:
            _write_states(formatter)
        case Topic.EXIT_CODES:
            formatter.write_text("Each --help ends with what the codes mean for its command.")
            for heading, codes in (
                ("Exit codes", ExitStatus),
                ("Exit codes of rwq check, those of a monitoring plugin", MonitoringStatus),
            ):
                rows = [(str(int(code)), code.meaning) for code in codes]
                _write_rows(formatter, heading, rows)
        case Topic.ENVIRONMENT:
            from rwq_cli.help.variables import VARIABLES

            formatter.write_text("An option on the command line overrides a variable.")
            for heading, variables in VARIABLES.items():
                _write_rows(formatter, heading, variables.items())
        case Topic.RECIPES:
            _write_recipes(formatter)


def _write_states(formatter: Any) -> None:
    from rwq_cli.views.states import STATES

    formatter.write_text(
        "Every command decides the state of an ID from what the server stores about it at one "
        "instant. rwq show ID shows the state of one item; rwq stats counts the items in each "
        "state."
    )
    rows = [
        (str(state), f"{known.meaning} On the server: {known.holds}. Next: {known.next}.")
        for state, known in STATES.items()
    ]
    _write_rows(formatter, "States, in a queue named jobs", rows)


def _write_recipes(formatter: Any) -> None:
    from rwq_cli.help.recipes import RECIPES

    formatter.write_text("The queue is named jobs. Each recipe can be pasted into a shell.")
    for recipe in RECIPES:
        with formatter.section(recipe.title):
            formatter.write_text(_without_markup(recipe.text))
            formatter.write_paragraph()
            for line in recipe.commands:
                formatter.write(f"    {line}\n")


def _write_rows(formatter: Any, heading: str, rows: Iterable[tuple[str, str]]) -> None:
    with formatter.section(heading):
        formatter.write_dl([(term, _without_markup(text)) for term, text in rows])


def _without_markup(text: str) -> str:
    return text.replace("`", "")
