"""What `rwq` without a command shows: where to begin, on one screen."""

import textwrap
from typing import NamedTuple


class Hint(NamedTuple):
    """A line of the overview.

    Attributes:
        purpose: What the commands from here on are for; empty for the same as above.
        command: A command line.
        text: What it does.
    """

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
    """The text, for a terminal of this width."""
    first, second = (max(map(len, column)) for column in list(zip(*HINTS, strict=True))[:2])
    lines = [f"{one.purpose:{first}}  {one.command:{second}}  {one.text}" for one in HINTS]
    if max(map(len, lines)) > columns:
        lines = [f"{one.purpose:{first}}  {one.command}" for one in HINTS]
    closing = [line for text in _CLOSING for line in textwrap.wrap(text, columns)]
    return "\n".join(("Usage: rwq [OPTIONS] COMMAND [ARGS]...", "", *lines, "", *closing))
