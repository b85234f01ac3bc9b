"""`rwq result`: show the result of a completed item."""

from collections.abc import Callable
from math import inf
from typing import Annotated

from rwq_cli.cli.command import command
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.open_queues import warn_missing
from rwq_cli.cli.options import Duration, argument, offer_ids, option, parse_id
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.results import ResultStatus
from rwq_cli.core.items.results import ResultLookup, result as read_result
from rwq_cli.core.model import State
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import ID, NAME, Fields, field
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.sections import Row, Section
from rwq_cli.views.item_report import KEPT_FIELDS

# Wrapping some megabytes for a terminal would take minutes.
_SHOWN_BYTES = 16 * 1024

_STATUS, _COMPLETED, _BYTES, _TTL = KEPT_FIELDS
RESULT_FIELDS: Fields[ResultLookup] = Fields(
    "A result",
    field("queue", "queue", "the queue's name", NAME),
    field("id", "item_id", "the item's ID", ID),
    field("state", "state", "of the item that has this ID now, else `gone`"),
    _STATUS._replace(help=f"{_STATUS.help}; from here on, null if no result is kept"),
    field("result", "result.result", "the bytes that were kept", is_bytes=True, is_data=True),
    _BYTES,
    _COMPLETED,
    field("holder", "result.holder", "who held it then, escaped; null = nobody"),
    _TTL,
)


def result_note(lookup: ResultLookup, output: OutputFormat) -> str | None:
    """A note on what the output does not show of a result."""
    assert lookup.result is not None
    shown = escaped(lookup.item_id)
    if lookup.state is not State.GONE:
        return (
            f"note: {shown} was added again, and is {lookup.state.value} now; this is the "
            "result of the earlier item"
        )
    if lookup.result.status is ResultStatus.REJECTED and output.is_raw:
        return f"note: {shown} was rejected"
    return None


def missing_result(lookup: ResultLookup) -> str:
    shown = escaped(lookup.item_id)
    if lookup.state is State.GONE:
        return f"no result for {shown}: there is neither an item nor a result"
    still = "still " if lookup.timed_out else ""
    return f"no result for {shown}: it is {still}{lookup.state.value}"


def result_sections(lookup: ResultLookup, now_ms: Callable[[], int]) -> list[Section]:
    result = lookup.result
    rows: list[Row] = [("queue", escaped(lookup.queue), None)]
    if result is None:
        return [
            Section(escaped(lookup.item_id), [*rows, ("result", missing_result(lookup), "red")])
        ]
    expiry = "never"
    if result.ttl_ms is not None:
        expiry = f"in {human.duration(result.ttl_ms / 1000)}"
    style = "green" if result.status is ResultStatus.COMPLETED else "red"
    size = "no result given" if result.result is None else human.size(len(result.result))
    rows += [
        ("status", result.status.value, style),
        ("when", human.when(result.completed_ms, now_ms()), None),
        ("held by", "nobody" if result.holder is None else escaped(result.holder), None),
        ("size", size, None),
        ("expires", expiry, None),
    ]
    sections = [Section(escaped(lookup.item_id), rows)]
    if result.result:
        sections.append(Section("Result", [("", _shortened(result.result), None)]))
    return sections


def _shortened(result: bytes) -> str:
    """The lines of a result, escaped, and cut off after _SHOWN_BYTES."""
    lines = [escaped(line) for line in result[:_SHOWN_BYTES].split(b"\n")]
    if len(result) > _SHOWN_BYTES:
        lines.append(f"… the first {human.size(_SHOWN_BYTES)}; -o data prints all of it")
    return "\n".join(lines)


@command(
    record=RESULT_FIELDS,
    help="Show the result that complete stored for an item. --wait waits until the item is gone, "
    "even if it leaves no result.",
    examples=(
        "rwq result -q jobs 4f2a9c",
        "rwq result -q jobs 4f2a9c --timeout 10m -o data > answer.json",
        "rwq result -q jobs 4f2a9c -o json",
    ),
    ok="there is a result, completed or rejected",
    no="there is none: the item exists, or is gone without one",
    works_read_only=True,
    always_table=True,
)
def result(
    settings: Settings,
    item_id: Annotated[bytes, argument("ID", "The item's ID.", parse_id, offer=offer_ids())],
    wait: Annotated[
        bool,
        option(
            "--wait", "Wait while the item exists, in any state. Due items are promoted meanwhile."
        ),
    ] = False,
    timeout_s: Annotated[
        Duration | None, option("--timeout DUR", "Wait, but at most this long.", Duration)
    ] = None,
) -> ExitStatus:
    if item_id == b"-":
        raise InvalidArgument(
            "one ID is needed, and - means IDs on stdin", "rwq show - shows the results of many"
        )
    queue = open_queue(settings)
    waits = wait or timeout_s is not None
    limit_s = inf if timeout_s is None else timeout_s

    lookup = read_result(
        queue, item_id, wait=waits, timeout_s=limit_s, promotes=not settings.is_read_only
    )
    is_missing = lookup.result is None
    environment, output = settings.environment, settings.output
    if is_missing and output.is_raw:
        # The reason for no output is an error, which --quiet does not hide.
        environment.error(missing_result(lookup))
    elif not is_missing and (note := result_note(lookup, output)):
        environment.note(note)
    settings.out.describe(
        # Without a result, `-o ids` prints nothing.
        [] if is_missing and output is OutputFormat.IDS else [lookup],
        RESULT_FIELDS,
        lambda shown: result_sections(shown, queue.now_ms),
    )
    if is_missing:
        warn_missing(settings, queue)
    return ExitStatus.NO if is_missing else ExitStatus.OK
