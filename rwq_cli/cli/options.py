"""Options and arguments that several commands share, their values, and the values' completions.

Typer calls what is passed as `autocompletion=`. Only names that mean the same in every shell
without quotes, but for spaces, are offered, because Typer's scripts do not quote.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperOption

from rwq_cli.cli.settings import Settings
from rwq_cli.core.clock import GRACE_S, LEASE_S, lease_time_ms, result_time_ms
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.model import State
from rwq_cli.core.server.patience import CONNECT_TIMEOUT_S, PATIENCE_S, REPLY_TIMEOUT_S
from rwq_cli.environment import ColourMode
from rwq_cli.exit_codes import UsageError
from rwq_cli.input.values import parse_duration, parse_rate
from rwq_cli.output import human
from rwq_cli.output.options import OutputFormat

_PLAIN = re.compile(r"(?! )[\w @%+=:,./-]+(?<! )")
_NAMES_MAX = 50
_LISTED = frozenset(
    map(State, ("waiting", "leased", "held", "abandoned", "delayed", "due", "buried"))
)

Offer = Callable[[typer.Context, list[str], str], list[str]]


def _offer(find: Callable[[Settings], Iterable[bytes]]) -> Offer:
    def offered(ctx: typer.Context, args: list[str], incomplete: str) -> list[str]:  # noqa: ARG001
        names = map(os.fsdecode, find(ctx.find_root().obj.settings))
        return [name for name in names if _PLAIN.fullmatch(name)]

    return offered


def offer_ids(states: frozenset[State] = _LISTED) -> Offer:
    """Offer the first IDs of the queue that are in one of these states and in a list."""

    @_offer
    def offered(settings: Settings) -> Iterable[bytes]:
        from rwq_cli.cli.connect import open_queue
        from rwq_cli.core.inspect.selection import Selection, source_of

        wanted = states & _LISTED
        items = open_queue(settings).items(
            source_of(wanted), Selection(wanted), limit=_NAMES_MAX, bare=True
        )
        return [item.item_id for item in items]

    return offered


@_offer
def offer_queues(settings: Settings) -> Iterable[bytes]:
    from rwq_cli.cli.connect import open_connection
    from rwq_cli.core.inspect.queues import queue_names

    return queue_names(open_connection(settings))


@_offer
def offer_holders(settings: Settings) -> Iterable[bytes]:
    from rwq_cli.cli.connect import open_queue
    from rwq_cli.core.inspect.listing import leases as leases_of

    leases = leases_of(open_queue(settings), limit=_NAMES_MAX)
    return dict.fromkeys(item.lease.holder for item in leases if item.lease is not None)


@_offer
def offer_paths(settings: Settings) -> Iterable[bytes]:
    """Offer the paths in the JSON data of the first items, unless reading resets idle times."""
    import json

    from rwq_cli.cli.connect import open_queue
    from rwq_cli.core.inspect.selection import Source

    def paths_of(value: object, prefix: str = "") -> Iterator[str]:
        if prefix:
            yield prefix
        for name, inner in value.items() if isinstance(value, dict) else ():
            if re.fullmatch(r"\w+", name):
                yield from paths_of(inner, f"{prefix}.{name}".lstrip("."))

    queue, paths = open_queue(settings), dict[str, None]()
    if queue.connection.set_no_touch():
        everywhere = Source(main=True, processing=True, delayed=True, buried=True)
        for item in queue.items(everywhere, limit=_NAMES_MAX, data=True):
            with suppress(ValueError):
                paths.update(dict.fromkeys(paths_of(json.loads(item.data or b""))))
    return map(os.fsencode, paths)


def _fields(ctx: typer.Context, args: list[str], incomplete: str) -> list[str]:  # noqa: ARG001
    """Offer the fields of the command's records that the word does not name yet."""
    fields = ctx.find_root().obj.manual.fields()
    before, comma, _ = incomplete.rpartition(",")
    names = [field.flat_name for field in fields.all] if fields is not None else []
    return [f"{before}{comma}{name}" for name in names if name not in before.split(",")]


offer_contexts = _offer(lambda settings: map(os.fsencode, settings.contexts.by_name))


class Duration(float):
    """A number of seconds, shown as `5m`."""

    def __str__(self) -> str:
        return human.duration(self)


def duration(text: str | float) -> Duration:
    # Typer parses defaults, too, which are numbers.
    return Duration(parse_duration(text) if isinstance(text, str) else text)


# More than any queue holds.
COUNT_MAX = 10**15
DEFAULT_LEASE = Duration(LEASE_S)
DEFAULT_GRACE = Duration(GRACE_S)


def parse_id(text: str) -> bytes:
    if not text:
        raise InvalidArgument("an ID is empty", "is a variable in the script unset?")
    return os.fsencode(text)


def option(
    usage: str,
    help: str,
    parser: Callable[[str], Any] | None = None,
    offer: Callable[..., list[str]] | None = None,
    *,
    min: int | None = None,
) -> Any:
    """Return an option for Typer; `usage` is its names and metavar, as in `-n, --limit N`."""
    # `min` is the minimum of a whole number, and `offer` completes a value. A `DUR` is parsed as a
    # duration unless a parser is given.
    names, metavar = _names_and_metavar(usage)
    if min is not None:
        parser = _make_number_parser(names[0], min)
    elif metavar == "DUR" and parser is None:
        parser = duration
    return typer.Option(*names, metavar=metavar, parser=parser, help=help, autocompletion=offer)


def argument(
    metavar: str,
    help: str,
    parser: Callable[[str], Any] | None = None,
    *,
    offer: Callable[..., list[str]] | None = None,
) -> Any:
    return typer.Argument(metavar=metavar, help=help, parser=parser, autocompletion=offer)


def _names_and_metavar(usage: str) -> tuple[list[str], str | None]:
    words = usage.replace(", ", " ").split()
    names = [word for word in words if word.startswith("-")]
    return names, None if words[-1].startswith("-") else words[-1]


def _make_number_parser(name: str, least: int) -> Callable[[str], int]:
    def parse(text: str | int) -> int:
        # `int` also accepts `1_0`, and the digits of other scripts.
        if not re.fullmatch("[0-9]{1,999}", str(text)) or int(text) < least:
            raise UsageError(
                f"{name} cannot be {str(text)!r}", f"it must be a whole number of at least {least}"
            )
        # `islice` and the server's Lua take no larger number.
        return min(int(text), COUNT_MAX)

    return parse


def make_duration_parser(check: Callable[[float], object]) -> Callable[[str], Duration]:
    """Return a parser of durations; `check` raises for those that are not allowed."""

    def parse(text: str) -> Duration:
        seconds = duration(text)
        check(seconds)
        return seconds

    return parse


def positive(name: str) -> Callable[[str], Duration]:
    def check(seconds: float) -> None:
        if not seconds:
            raise InvalidArgument(f"{name} must be more than 0", "give a duration such as 5s")

    return make_duration_parser(check)


# For `--every` and `--watch`.
interval = positive("the interval")


LeaseForOption = Annotated[
    Duration,
    option("--for DUR", "How long the lease lasts from now.", make_duration_parser(lease_time_ms)),
]
RateOption = Annotated[
    float | None, option("--rate N/s", "Not more than N items a second (/m, /h).", parse_rate)
]
result_duration = make_duration_parser(result_time_ms)


class Address(NamedTuple):
    """A host, empty for all addresses of this machine, and a port, 0 for a free one."""

    host: str
    port: int


def _address(text: str) -> Address:
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
    option("--watch DUR", "Refresh interval; in a pipe, records are appended.", interval),
]
TimeoutOption = Annotated[Duration | None, option("--timeout DUR", "Wait up to this long.")]
FairOption = Annotated[bool, option("--fair", "Take from several queues in random order.")]
NotifyOption = Annotated[bool, option("--notify", "Notify systemd: ready, alive, stopping.")]
GraceOption = Annotated[
    Duration,
    option(
        "--grace DUR",
        "How long an item must look broken before it is repaired: longer than any worker takes "
        "between pop and lease.",
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
ForceOption = Annotated[bool, option("--force", "Act on items leased by other sessions, too.")]
AllQueuesOption = Annotated[
    bool, option("--all-queues", "Every queue; -q takes several, and patterns ('mail:*').")
]


class ListingOptions(NamedTuple):
    """The options of commands that list items."""

    settings: Settings
    limit: Annotated[int, option("-n, --limit N", "How many at most; 0 for all.", min=0)] = 50
    data: Annotated[bool, option("--data", "Read all of the data, for json, jsonl and csv.")] = (
        False
    )
    watch: WatchOption = None
    all_queues: AllQueuesOption = False


# The options of every command with their help.
_COMMON = {
    "-q --queue NAME": "The queue. Default: RWQ_QUEUE, else the context's.",
    "-u --url URL": (
        "The server. Default: -c, RWQ_URL, RWQ_CONTEXT, the current context, REDIS_URL, "
        "redis://localhost:6379/0."
    ),
    "-c --context CONTEXT": "The server of this context.",
    "-o --output FORMAT": (
        f"{', '.join(OutputFormat)}. Default: RWQ_OUTPUT, else table on a terminal."
    ),
    "--password-file FILE": (
        "A file with the password. Default: the password of the URL or context; else, for a "
        "server named by its URL, RWQ_PASSWORD."
    ),
    "--tls-ca FILE": "Certificate authorities to trust (rediss://).",
    "--tls-cert FILE": "The client's certificate.",
    "--tls-key FILE": "The client's key.",
    "--tls-insecure": "Accept any server certificate.",
    "--connect-timeout DUR": f"How long connecting may take.  [default: {CONNECT_TIMEOUT_S:g}s]",
    "--reply-timeout DUR": (
        "How long to wait for one reply, for slow servers; a command that waits by design waits "
        f"longer.  [default: {REPLY_TIMEOUT_S:g}s]"
    ),
    "--patience DUR": (
        "How long to wait while a server is busy or loads its data, for a failover, or until a "
        f"queue has moved to another node.  [default: {PATIENCE_S:g}s]"
    ),
    "--write": "Allow changes in a read-only context.",
    "--fields NAME,...": (
        "Only these fields, in this order, in any format; an unknown name lists the valid ones, "
        "and .tenant.id is a path into JSON data."
    ),
    "--sort FIELD": "Sort the records by this field.",
    "--by FIELD": "Count the records by the values of this field, most frequent first.",
    "--reverse": "Reverse the order of the records.",
    "--color WHEN": f"{', '.join(ColourMode)}. Default: auto: on a terminal, without NO_COLOR.",
    "-Q --quiet": "Print only results and errors: no notes, summaries or progress.",
    "-v --verbose": "Print server, queue and format on stderr, and where each comes from.",
    "--debug": "Show the traceback of an error.",
}
# The completions of their values.
_OFFERS: dict[str, Callable[..., list[str]]] = {
    "queue": offer_queues,
    "context": offer_contexts,
    "output": lambda *_: list(OutputFormat),
    "fields": _fields,
    "sort": _fields,
    "by": _fields,
    "color": lambda *_: list(ColourMode),
}


def check_not_empty(parameter: Any, value: Any) -> None:
    """Raise `InvalidArgument` if the text that an option was given, or one of them, is empty."""
    if value == "" or (isinstance(value, list | tuple) and "" in value):
        raise InvalidArgument(f"{parameter.opts[0]} is empty", "is a variable in the script unset?")


def _store(context: Any, parameter: Any, value: Any) -> None:
    check_not_empty(parameter, value)
    context.find_root().obj.set_common_option(parameter.name, value)


def make_common_options() -> list[TyperOption]:
    # New objects for each command: two cannot share them.
    options = []
    for usage, help in _COMMON.items():
        names, metavar = _names_and_metavar(usage)
        parser = duration if names == ["--patience"] else positive(names[0])
        options.append(
            TyperOption(
                param_decls=names,
                metavar=metavar,
                is_flag=metavar is None,
                multiple=names[-1] == "--queue",
                type=parser if metavar == "DUR" else None,
                help=help,
                autocompletion=_OFFERS.get(names[-1].lstrip("-")),
                callback=_store,
                expose_value=False,
            )
        )
    return options


COMMON_NAMES = frozenset(usage.split("--")[1].split()[0].replace("-", "_") for usage in _COMMON)
