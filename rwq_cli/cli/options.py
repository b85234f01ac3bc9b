"""Options and arguments of several commands, and the types of their values."""

import os
from collections.abc import Callable
from typing import Annotated, Any

import typer

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.input.durations import parse_duration


class Duration(float):
    """A number of seconds, with the text that it was parsed from, such as `5m`."""

    text: str

    def __new__(cls, text: str) -> "Duration":
        made = super().__new__(cls, parse_duration(str(text)))
        made.text = str(text)
        return made

    def __str__(self) -> str:
        return self.text


FIVE_MINUTES = Duration("5m")
A_SECOND = Duration("1s")


def parse_id(text: str) -> bytes:
    """An ID from the command line.

    Raises:
        InvalidArgument: It is empty.
    """
    if not text:
        raise InvalidArgument("an ID is empty", "an unset variable in the script?")
    return os.fsencode(text)


def option(
    usage: str, help: str, parser: Callable[[str], Any] | None = None, *, min: int | None = None
) -> Any:
    """An option for Typer.

    Args:
        usage: Its names and its metavar, as in `-n, --limit N`; a flag has no metavar.
        help: What it does.
        parser: Makes the value of its text; None for Typer's own parser.
        min: The least number.
    """
    words = usage.split()
    names = [word.rstrip(",") for word in words if word.startswith("-")]
    metavar = None if words[-1].startswith("-") else words[-1]
    return typer.Option(*names, metavar=metavar, parser=parser, min=min, help=help)


def _lease_duration(text: str) -> Duration:
    lease_s = Duration(text)
    if lease_s < 0.001:
        raise InvalidArgument("a lease must last at least 1ms", "give --for a longer time")
    return lease_s


LeaseForOption = Annotated[
    Duration, option("--for DUR", "How long the lease lasts, counted from now.", _lease_duration)
]
GraceOption = Annotated[
    Duration,
    option(
        "--grace DUR",
        "How long an item must look broken; longer than any worker takes from pop to lease.",
        Duration,
    ),
]
IdsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID...", help="IDs, or - to read them from stdin, one a line."),
]
# The help of `-0` of a command.
NULL_IDS = "End each ID of -o ids with NUL, and do not escape it."
NULL_RECORDS = "End each record of -o ids and -o data with NUL, and do not escape it."
NULL_IDS_BOTH_WAYS = "IDs end with NUL, on stdin and with -o ids."
DryRunOption = Annotated[
    bool, option("--dry-run", "Report what would be done, but change nothing.")
]
YesOption = Annotated[bool, option("--yes", "Do not ask.")]
ForceOption = Annotated[bool, option("--force", "Also items that another session holds.")]
YesToForceOption = Annotated[bool, option("--yes", "Do not ask before --force ends leases.")]
LimitOption = Annotated[int, option("-n, --limit N", "How many at most; 0 for all.", min=0)]
DataOption = Annotated[bool, option("--data", "Read whole payloads, for json, jsonl and csv.")]
