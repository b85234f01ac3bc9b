"""What `--watch` adds to the records of a report: the time."""

from typing import Any, TypeVar

from rwq_cli.output.report import Column, View

T = TypeVar("T")


def with_time(view: View[T], at_ms: int) -> View[T]:
    """A view with the time of the tick as the last field.

    Args:
        view: The view.
        at_ms: The time, on the server's clock, unix ms.
    """

    def fields(record: T) -> dict[str, Any]:
        return {**view.fields(record), "at_ms": at_ms}

    at: Column[T] = Column("AT", lambda _: at_ms, field="at_ms")
    plain = view.plain_columns or view.columns
    return view._replace(
        fields=fields, plain_columns=(*plain, at), all_columns=(*view.all_columns, at)
    )
