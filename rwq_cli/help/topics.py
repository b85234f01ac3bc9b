"""The topics of `rwq help`, made from the tables that the commands themselves use."""

from collections.abc import Iterable
from enum import StrEnum

from rwq_cli.exit_codes import ExitCode, ExitStatus, MonitoringStatus
from rwq_cli.help.page import Page, PageSection


class Topic(StrEnum):
    """A topic; the value is its name."""

    STATES = "states"
    EXIT_CODES = "exit-codes"
    ENVIRONMENT = "environment"
    RECIPES = "recipes"


SUMMARIES = {
    Topic.STATES: "The states of an item, and what happens next",
    Topic.EXIT_CODES: "What the exit codes mean",
    Topic.ENVIRONMENT: "The environment variables that rwq reads",
    Topic.RECIPES: "Ten tasks with the commands for them",
}


def topic_page(topic: Topic) -> Page:
    """The page of a topic."""
    make = {
        Topic.STATES: _states,
        Topic.EXIT_CODES: _exit_codes,
        Topic.ENVIRONMENT: _environment,
        Topic.RECIPES: _recipes,
    }[topic]
    text, sections = make()
    return Page(SUMMARIES[topic], text, sections)


def _states() -> tuple[str, list[PageSection]]:
    from rwq_cli.views.states import STATES

    text = (
        "Every command decides the state of an ID from what the server stores about it at one "
        "instant. `rwq show ID` shows the state of one item; `rwq stats` counts the items in each "
        "state."
    )
    return text, [
        PageSection(
            "States, in a queue named jobs",
            rows=[
                (f"`{state}`", f"{known.meaning} On the server: {known.holds}. Next: {known.next}.")
                for state, known in STATES.items()
            ],
        )
    ]


def _exit_codes() -> tuple[str, list[PageSection]]:
    text = "Each `--help` ends with what the codes mean for its command."
    return text, [
        PageSection("Exit codes", rows=_codes(ExitStatus)),
        PageSection(
            "Exit codes of rwq check",
            text="Those of a monitoring plugin.",
            rows=_codes(MonitoringStatus),
        ),
    ]


def _codes(codes: Iterable[ExitCode]) -> list[tuple[str, str]]:
    return [(f"`{int(code)}`", code.meaning) for code in codes]


def _environment() -> tuple[str, list[PageSection]]:
    from rwq_cli.help.variables import VARIABLES

    text = "An option on the command line overrides a variable."
    return text, [
        PageSection(heading, rows=[(f"`{names}`", meaning) for names, meaning in rows.items()])
        for heading, rows in VARIABLES.items()
    ]


def _recipes() -> tuple[str, list[PageSection]]:
    from rwq_cli.help.recipes import RECIPES

    text = "The queue is named jobs. Each recipe can be pasted into a shell."
    return text, [PageSection(one.title, text=one.text, code=one.commands) for one in RECIPES]
