"""The order of records, and whether a command can honour the options of its output."""

from collections import deque
from collections.abc import Iterable, Iterator
from heapq import nlargest, nsmallest
from typing import Any, TypeVar

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.output.escape import JsonText
from rwq_cli.output.field import Fields, count_by_value
from rwq_cli.output.options import OutputFormat, OutputOptions

T = TypeVar("T")


def check(fields: Fields[Any], options: OutputOptions) -> None:
    output = options.output
    if options.by is not None and not fields.is_stream:
        fields = count_by_value((), fields, options.by)[1]
    if options.fields is not None:
        # A summary has fields of its own.
        if not (fields.has_summary and output is OutputFormat.JSON):
            fields.only(options.fields)
        if output.is_raw:
            raise InvalidArgument(f"--fields cannot be used with -o {output}", "use -o plain")
    if fields.is_stream:
        if options.reads_all:
            raise InvalidArgument(
                "--sort, --reverse and --by work only for listings",
                "this command streams its records",
            )
        return
    if options.sort is not None:
        fields.columns_of(options.sort)
    if output is OutputFormat.IDS and fields.has_other_ids and options.is_ordered:
        raise InvalidArgument(
            "-o ids prints items, and --sort and --reverse order what this command lists",
            "leave them out",
        )
    if output.is_raw and not fields.has(output):
        others = [other for other in OutputFormat if not other.is_raw]
        raise InvalidArgument(
            f"-o {output} has nothing to print for this command", f"use one of {', '.join(others)}"
        )


def sort_records(
    records: Iterable[T], fields: Fields[T], options: OutputOptions, count: int | None
) -> Iterator[T]:
    """Yield the first `count` records in the requested order; all are read, only these kept."""
    if options.sort is None:
        yield from reversed(deque(records, count))
        return
    value, is_reversed = fields.columns_of(options.sort)[0].get, options.reverse

    def key(record: T) -> tuple[bool, object]:
        content = value(record)
        # Records without a value come last, in either order.
        return (content is None) is not is_reversed, None if content is None else _sort_key(content)

    if count is None:
        yield from sorted(records, key=key, reverse=is_reversed)
    else:
        yield from (nlargest if is_reversed else nsmallest)(count, records, key=key)


def _sort_key(value: Any) -> tuple[bool, float, bytes]:
    """Order numbers by their value, before texts by their bytes."""
    if isinstance(value, JsonText):
        # A number inside JSON data.
        try:
            value = float(value)
        except ValueError:
            return True, 0, value.encode()
    if isinstance(value, int | float):
        return False, value, b""
    return True, 0, value if isinstance(value, bytes) else str(value).encode()
