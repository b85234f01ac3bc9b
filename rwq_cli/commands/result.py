"""`rwq result`: show the result of a completed item."""

from collections.abc import Callable
from math import inf
from typing import Annotated

from rwq_cli.cli.connect import open_queue, warn_missing
from rwq_cli.cli.options import TimeoutOption, offer_ids, parse_id
from rwq_cli.commands import ExitStatus, InvalidArgument, Settings, argument, command, option
from rwq_cli.core.inspect.results import ResultStatus
from rwq_cli.core.items.results import ResultLookup, result as read_result
from rwq_cli.core.model import State
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import ID, NAME, Fields, field
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.sections import Line, Section
from rwq_cli.views.item_report import KEPT_FIELDS

_STATUS, _COMPLETED, _BYTES, _TTL = KEPT_FIELDS
RESULT_FIELDS: Fields[ResultLookup] = Fields(
    "A result",
    field("queue", "queue", "the queue's name", NAME),
    field("id", "item_id", "the item's ID", ID),
    field("state", "state", "the state of the item that has this ID now, else `gone`"),
    _STATUS._replace(help=f"{_STATUS.help}; from here on, null if no result is kept"),
    field("result", "result.result", "the bytes that were kept", is_bytes=True, is_data=True),
    _BYTES,
    _COMPLETED,
    field("holder", "result.holder", "who held it then, escaped; null = nobody"),
    _TTL,
)


def _missing(lookup: ResultLookup) -> str:
    item_id = escaped(lookup.item_id)
    if lookup.state is State.GONE:
        return f"no result for {item_id}: there is neither an item nor a result"
    still = "still " if lookup.timed_out else ""
    return f"no result for {item_id}: it is {still}{lookup.state.value}"


def _sections(lookup: ResultLookup, now_ms: Callable[[], int]) -> list[Section]:
    result, title = lookup.result, escaped(lookup.item_id)
    rows: list[Line] = [("queue", escaped(lookup.queue), None)]
    if result is None:
        return [Section(title, [*rows, ("result", _missing(lookup), "red")])]
    is_completed = result.status is ResultStatus.COMPLETED
    data, left_s = result.result, None if result.ttl_ms is None else result.ttl_ms / 1000
    rows += [
        ("status", result.status.value, "green" if is_completed else "red"),
        ("when", human.when(result.completed_ms, now_ms()), None),
        ("held by", "nobody" if result.holder is None else escaped(result.holder), None),
        ("size", "no result given" if data is None else human.size(len(data)), None),
        ("expires", "never" if left_s is None else f"in {human.duration(left_s)}", None),
    ]
    if not data:
        return [Section(title, rows)]
    text = "\n".join(map(escaped, data.split(b"\n")))
    return [Section(title, rows), Section("Result", [("", text, None)], is_data=True)]


@command(
    record=RESULT_FIELDS,
    ok="there is a result, completed or rejected",
    no="there is none: the item exists, or is gone without one",
    works_read_only=True,
    always_table=True,
)
def result(
    settings: Settings,
    item_id: Annotated[bytes, argument("ID", "The item's ID.", parse_id, offer=offer_ids())],
    wait: Annotated[bool, option("--wait", "Wait while it exists; promotes due items.")] = False,
    timeout_s: TimeoutOption = None,
) -> ExitStatus:
    """Show the result that complete stored for an item. --wait waits until the item is gone, even
    if it leaves no result.

    rwq result -q jobs 4f2a9c
    rwq result -q jobs 4f2a9c --timeout 10m -o data > answer.json
    rwq result -q jobs 4f2a9c -o json
    """
    if item_id == b"-":
        raise InvalidArgument(
            "one ID is needed, and - reads any number from stdin",
            "rwq show - shows the results of many",
        )
    queue = open_queue(settings)
    lookup = read_result(
        queue,
        item_id,
        wait=wait or timeout_s is not None,
        timeout_s=inf if timeout_s is None else timeout_s,
        promotes=not settings.is_read_only,
    )
    environment, output, id_shown = settings.environment, settings.output, escaped(item_id)
    is_missing = lookup.result is None
    if lookup.result is None:
        if output.is_raw:
            # The reason for no output is an error, which --quiet does not hide.
            environment.error(_missing(lookup))
    elif lookup.state is not State.GONE:
        environment.note(
            f"note: {id_shown} was added again, and is {lookup.state.value} now; this is the "
            "result of the earlier item"
        )
    elif lookup.result.status is ResultStatus.REJECTED and output.is_raw:
        environment.note(f"note: {id_shown} was rejected")
    settings.out.describe(
        # Without a result, `-o ids` prints nothing.
        [] if is_missing and output is OutputFormat.IDS else [lookup],
        RESULT_FIELDS,
        lambda record: _sections(record, queue.now_ms),
    )
    if is_missing:
        warn_missing(settings, queue)
    return ExitStatus.NO if is_missing else ExitStatus.OK
