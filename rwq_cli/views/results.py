"""The result that `complete` stored for an item."""

from collections.abc import Callable, Iterable
from typing import Any

from rwq_cli.core.inspect.results import ResultStatus
from rwq_cli.core.items.results import ResultLookup
from rwq_cli.core.model import State
from rwq_cli.output import human
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.escape import escaped
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.report import Records, Row, Section, View

# Wrapping some megabytes for a terminal would take minutes.
_SHOWN_BYTES = 16 * 1024


def result_report(
    lookup: Iterable[ResultLookup], now_ms: Callable[[], int]
) -> Records[ResultLookup]:
    """The report of `rwq result`.

    Args:
        lookup: The one lookup. Reading it waits for the item, if requested.
        now_ms: Returns the server's clock.
    """
    return Records(
        view=View(
            _fields,
            lambda lookup: None if lookup.result is None else lookup.item_id,
            ResultLookup(b"", b"", State.GONE, None),
            sections=lambda lookup: _sections(lookup, now_ms),
            data=lambda lookup: None if lookup.result is None else lookup.result.result,
        ),
        records=lookup,
        is_one=True,
        is_missing=lambda lookup: lookup.result is None,
        note=_note,
    )


def _note(lookup: ResultLookup, output: OutputFormat) -> str | None:
    """A note on what the output does not show."""
    if lookup.result is None:
        return _missing(lookup) if output.is_bare else None
    shown = escaped(lookup.item_id)
    if lookup.state is not State.GONE:
        return (
            f"note: {shown} was added again, and is {lookup.state.value} now; this is the "
            "result of the earlier item"
        )
    if lookup.result.status is ResultStatus.REJECTED and output.is_bare:
        return f"note: {shown} was rejected"
    return None


def _missing(lookup: ResultLookup) -> str:
    shown = escaped(lookup.item_id)
    if lookup.state is State.GONE:
        return f"no result for {shown}: there is neither an item nor a result"
    still = "still " if lookup.timed_out else ""
    return f"no result for {shown}: it is {still}{lookup.state.value}"


def _fields(lookup: ResultLookup) -> dict[str, Any]:
    result = lookup.result
    return {
        **bytes_fields("queue", lookup.queue),
        **bytes_fields("id", lookup.item_id),
        "state": lookup.state.value,
        "status": None if result is None else result.status.value,
        **bytes_fields("result", None if result is None else result.result),
        "bytes": None if result is None else result.result_bytes,
        "completed_ms": None if result is None else result.completed_ms,
        "holder": None if result is None or result.holder is None else escaped(result.holder),
        "ttl_ms": None if result is None else result.ttl_ms,
    }


def _sections(lookup: ResultLookup, now_ms: Callable[[], int]) -> list[Section]:
    result = lookup.result
    rows: list[Row] = [("queue", escaped(lookup.queue), None)]
    if result is None:
        return [Section(escaped(lookup.item_id), [*rows, ("result", _missing(lookup), "red")])]
    expiry = "never"
    if result.ttl_ms is not None:
        expiry = f"in {human.duration(result.ttl_ms / 1000)}"
    rows += [
        (
            "status",
            result.status.value,
            "green" if result.status is ResultStatus.COMPLETED else "red",
        ),
        ("when", human.when(result.completed_ms, now_ms()), None),
        ("held by", "nobody" if result.holder is None else escaped(result.holder), None),
        (
            "size",
            "no result given" if result.result is None else human.size(len(result.result)),
            None,
        ),
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
