"""The topics of `rwq help`, made from the tables that the commands themselves use."""

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from rwq_cli.exit_codes import ExitCode, ExitStatus, MonitoringStatus


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


TOPICS = {
    "options": "The options of every command",
    "states": "The states of an item, and what happens next",
    "exit-codes": "What the exit codes mean",
    "environment": "The environment variables that rwq reads",
    "recipes": "Ten tasks with the commands for them",
}


def write_topic(topic: str, formatter: Any, options: Iterable[tuple[str, str]]) -> None:
    from rwq_cli.help.recipes import RECIPES
    from rwq_cli.help.variables import VARIABLES
    from rwq_cli.views.states import STATES

    def meanings(codes: Iterable[ExitCode]) -> list[tuple[str, str]]:
        return [(str(int(code)), code.meaning) for code in codes]

    about: dict[str, tuple[str, Mapping[str, Iterable[tuple[str, str]]]]] = {
        "options": (
            "They are accepted before the command's name or after it.",
            {"Options": options},
        ),
        "states": (
            "Every command decides the state of an ID from what the server stores about it at one "
            "instant. rwq show ID shows the state of one item; rwq stats counts the items in each "
            "state.",
            {
                "States, in a queue named jobs": [
                    (state, f"{each.meaning} On the server: {each.holds}. Next: {each.next}.")
                    for state, each in STATES.items()
                ]
            },
        ),
        "exit-codes": (
            "Each --help ends with what the codes mean for its command.",
            {
                "Exit codes": meanings(ExitStatus),
                "Exit codes of rwq check, those of a monitoring plugin": meanings(MonitoringStatus),
            },
        ),
        "environment": (
            "An option on the command line overrides a variable.",
            {heading: variables.items() for heading, variables in VARIABLES.items()},
        ),
        "recipes": ("The queue is named jobs. Each recipe can be pasted into a shell.", {}),
    }
    text, tables = about[topic]
    formatter.write_text(f"{TOPICS[topic]}.")
    formatter.write_paragraph()
    formatter.write_text(text)
    for heading, rows in tables.items():
        with formatter.section(heading):
            formatter.write_dl([(term, text.replace("`", "")) for term, text in rows])
    for recipe in RECIPES if topic == "recipes" else ():
        with formatter.section(recipe.title):
            formatter.write_text(recipe.text.replace("`", ""))
            formatter.write_paragraph()
            for line in recipe.commands:
                formatter.write(f"    {line}\n")
