"""Options and arguments of several commands, and the types of their values."""

import os
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


def duration_option(name: str, help: str) -> Any:
    """An option whose value is a `Duration`."""
    return typer.Option(name, metavar="DUR", parser=Duration, help=help)


def _lease_duration(text: str) -> Duration:
    lease_s = Duration(text)
    if lease_s < 0.001:
        raise InvalidArgument("a lease must last at least 1ms", "give --for a longer time")
    return lease_s


LeaseForOption = Annotated[
    Duration,
    typer.Option(
        "--for",
        metavar="DUR",
        parser=_lease_duration,
        help="How long the lease lasts, counted from now.",
    ),
]
GraceOption = Annotated[
    Duration,
    duration_option(
        "--grace",
        "How long an item must look broken; longer than any worker takes from its pop to its "
        "lease.",
    ),
]
IdsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID...", help="IDs, or - to read them from stdin, one a line."),
]
NullOption = Annotated[
    bool, typer.Option("-0", "--null", help="IDs on stdin, and those of -o ids, end with NUL.")
]
NullIdsOption = Annotated[
    bool, typer.Option("-0", "--null", help="-o ids ends each ID with NUL, unescaped.")
]
NullRecordsOption = Annotated[
    bool, typer.Option("-0", "--null", help="-o ids and -o data end each with NUL, unescaped.")
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Report what would be done, but change nothing.")
]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Also where another session still holds the lease.")
]
YesToForceOption = Annotated[
    bool, typer.Option("--yes", help="Do not ask before --force ends leases.")
]
LimitOption = Annotated[
    int, typer.Option("-n", "--limit", metavar="N", min=0, help="How many at most; 0 for all.")
]
DataOption = Annotated[
    bool, typer.Option("--data", help="Read all of the data, for json, jsonl and csv.")
]
