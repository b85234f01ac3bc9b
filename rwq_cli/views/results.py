"""The result that `complete` stored for an item."""

from collections.abc import Callable

from rwq_cli.core.inspect.results import ResultStatus
from rwq_cli.core.items.results import ResultLookup
from rwq_cli.core.model import State
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import Field, Fields, attribute
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.sections import Row, Section
from rwq_cli.views.item_report import RESULT_HELP

# Wrapping some megabytes for a terminal would take minutes.
_SHOWN_BYTES = 16 * 1024


RESULT_FIELDS: Fields[ResultLookup] = Fields(
    "A result",
    Field("queue", attribute("queue"), "the queue's name", is_bytes=True),
    Field("id", attribute("item_id"), "the item's ID", is_bytes=True, is_id=True),
    Field("state", attribute("state"), "of the item that has this ID now, else `gone`"),
    Field(
        "status",
        attribute("result.status"),
        "`completed` or `rejected`; from here on, null if no result is kept",
    ),
    Field(
        "result",
        attribute("result.result"),
        "the bytes that were kept",
        is_bytes=True,
        is_data=True,
    ),
    Field("bytes", attribute("result.result_bytes"), RESULT_HELP["bytes"]),
    Field("completed_ms", attribute("result.completed_ms"), RESULT_HELP["completed_ms"]),
    Field("holder", attribute("result.holder"), "who held it then, escaped; null = nobody"),
    Field("ttl_ms", attribute("result.ttl_ms"), RESULT_HELP["ttl_ms"]),
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
    """Why there is no result."""
    shown = escaped(lookup.item_id)
    if lookup.state is State.GONE:
        return f"no result for {shown}: there is neither an item nor a result"
    still = "still " if lookup.timed_out else ""
    return f"no result for {shown}: it is {still}{lookup.state.value}"


def result_sections(lookup: ResultLookup, now_ms: Callable[[], int]) -> list[Section]:
    """A result at length; `now_ms` returns the server's clock."""
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
