"""Options and arguments that several commands share, and the types of their values."""

import os
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import typer

from rwq_cli.cli.completing import offer_ids
from rwq_cli.core.clock import GRACE_S, LEASE_S, lease_time_ms, result_time_ms
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.exit_codes import UsageError
from rwq_cli.input.durations import parse_duration
from rwq_cli.output import human


class Duration(float):
    """A number of seconds, with the text that it was parsed from, such as `5m`."""

    text: str

    def __new__(cls, text: str) -> "Duration":
        made = super().__new__(cls, parse_duration(str(text)))
        made.text = str(text)
        return made

    @classmethod
    def of(cls, seconds: float) -> "Duration":
        """A number of seconds that the core gives, such as a default, with a text for the help."""
        return cls(human.duration(seconds))

    def __str__(self) -> str:
        return self.text


# More than any queue holds.
COUNT_MAX = 10**15
DEFAULT_LEASE = Duration.of(LEASE_S)
DEFAULT_GRACE = Duration.of(GRACE_S)


def parse_id(text: str) -> bytes:
    """An ID from the command line.

    Raises:
        InvalidArgument: It is empty.
    """
    if not text:
        raise InvalidArgument("an ID is empty", "is a variable in the script unset?")
    return os.fsencode(text)


def option(
    usage: str,
    help: str,
    parser: Callable[[str], Any] | None = None,
    *,
    min: int | None = None,
    offer: Callable[..., Sequence[str]] | None = None,
) -> Any:
    """An option for Typer.

    Args:
        usage: Its names and its metavar, as in `-n, --limit N`; a flag has no metavar.
        help: What it does.
        parser: Parses its value; None for Typer's own parser.
        min: For a whole number, the smallest one allowed.
        offer: What a Tab offers for its value.
    """
    words = usage.split()
    names = [word.rstrip(",") for word in words if word.startswith("-")]
    metavar = None if words[-1].startswith("-") else words[-1]
    if min is not None:
        parser = _whole_number(names[0], min)
    return typer.Option(*names, metavar=metavar, parser=parser, help=help, autocompletion=offer)


def _whole_number(name: str, least: int) -> Callable[[str], int]:
    """A parser for a whole number; it raises `UsageError`."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise UsageError(
                f"{name} cannot be {str(text)!r}", f"it must be a whole number of at least {least}"
            )
        # `islice` and the server's Lua take no larger number.
        return min(number, COUNT_MAX)

    return parse


def interval(text: str) -> Duration:
    """The time between two rounds of a clean, or two reports of --watch."""
    parsed = Duration(text)
    if not parsed:
        raise InvalidArgument("the interval must be more than 0", "such as 30s")
    return parsed


def _lease_duration(text: str) -> Duration:
    lease_s = Duration(text)
    lease_time_ms(lease_s)
    return lease_s


def result_duration(text: str) -> Duration:
    """How long a result is kept."""
    ttl_s = Duration(text)
    result_time_ms(ttl_s)
    return ttl_s


LeaseForOption = Annotated[
    Duration,
    option("--for DUR", "How long the lease lasts from now.", _lease_duration),
]


class Address(NamedTuple):
    """A host, empty for every address of this one, and a port, 0 for a free one."""

    host: str
    port: int


def _address(text: str) -> Address:
    """A host and a port from the command line, such as `127.0.0.1:9113` or `[::1]:9113`."""
    host, colon, port = text.rpartition(":")
    is_v6 = host.startswith("[") and host.endswith("]")
    if not colon or not port.isdecimal() or int(port) > 65535 or (":" in host and not is_v6):
        raise UsageError(f"--listen cannot be {text!r}", "give HOST:PORT, such as 127.0.0.1:9113")
    return Address(host.strip("[]"), int(port))


ListenOption = Annotated[
    Address | None,
    option("--listen HOST:PORT", "Serve /healthz and /metrics (Prometheus).", _address),
]
WatchOption = Annotated[
    Duration | None,
    option(
        "--watch DUR",
        "Refresh interval; redraws on a terminal, appends records in a pipe.",
        interval,
    ),
]
NotifyOption = Annotated[
    bool,
    option(
        "--notify",
        "Speak systemd's protocol: ready, alive, stopping.",
    ),
]
GraceOption = Annotated[
    Duration,
    option(
        "--grace DUR",
        "How long an item must look broken before it is repaired: longer than any worker takes "
        "between pop and lease.",
        Duration,
    ),
]
IdsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID...",
        help="IDs, or - to read them from stdin, one per line.",
        autocompletion=offer_ids(),
    ),
]
NULL_IDS = "End each ID of -o ids with NUL, and do not escape it."
NULL_RECORDS = "End records of -o ids and -o data with NUL, unescaped."
NULL_IDS_BOTH_WAYS = "IDs end with NUL, on stdin and with -o ids."
DryRunOption = Annotated[
    bool, option("--dry-run", "Report what would be done, but change nothing.")
]
YES_FOR = "A protected context needs --yes=NAME."
YesOption = Annotated[bool, option("--yes", f"Do not ask. {YES_FOR}")]
YesToReplaceOption = Annotated[
    bool,
    option(
        "--yes",
        f"Do not ask before replacing data with nothing, or JSON with other data. {YES_FOR}",
    ),
]
ForceOption = Annotated[bool, option("--force", "Act on items leased by other sessions, too.")]
YesToForceOption = Annotated[
    bool, option("--yes", f"Do not ask before --force ends leases. {YES_FOR}")
]
LimitOption = Annotated[int, option("-n, --limit N", "How many at most; 0 for all.", min=0)]
AllQueuesOption = Annotated[
    bool,
    option(
        "--all-queues",
        "Every queue; -q takes several, and patterns ('mail:*').",
    ),
]
DataOption = Annotated[bool, option("--data", "Read whole payloads, for json, jsonl and csv.")]
