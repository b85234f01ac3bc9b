"""`--fields`, `--sort` and `--reverse`: records with other fields, or in another order."""

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.output.encode import flat, to_json
from rwq_cli.output.options import OutputFormat, OutputOptions
from rwq_cli.output.report import LAST_EXTRA, Column, Cut, View

T = TypeVar("T")

# Fields that are cut in the middle on a narrow terminal.
_NAMES = ("queue", "id", "holder")


def with_fields(view: View[T], names: Sequence[str]) -> View[T]:
    """A view that has these fields only, in this order, in every format.

    Raises:
        InvalidArgument: There is no such field, or none is named.
    """
    if not names:
        raise InvalidArgument("--fields names no field", _known(view))
    columns = [column for name in names for column in _columns(view, name)]

    def fields(record: T) -> dict[str, Any]:
        whole = view.fields(record)
        inner = flat(whole, view.nested)
        return {name: whole[name] if name in whole else inner.get(name) for name in names}

    return view._replace(
        fields=fields,
        columns=[
            # The last ones are left out first, and the first one never.
            column._replace(rank=index and LAST_EXTRA + len(columns) - index)
            for index, column in enumerate(columns)
        ],
        plain_columns=(),
        all_columns=(),
        sections=None,
    )


def check_order(options: OutputOptions) -> None:
    """Raise `InvalidArgument` if an order is requested of records that are not read to the end."""
    if options.is_ordered:
        raise InvalidArgument(
            "--sort and --reverse work only for listings", "this command streams its records"
        )


def check_format(view: View[Any], options: OutputOptions, *, has_ids: bool = False) -> None:
    """Raise `InvalidArgument` if the format leaves nothing of a record.

    Args:
        view: Its representation.
        options: The output options.
        has_ids: Whether there are other IDs than those of the records.
    """
    lacks = None
    if options.format is OutputFormat.DATA and view.data is None:
        lacks = "data"
    elif options.format is OutputFormat.IDS and view.item_id is None:
        if has_ids and options.is_ordered:
            raise InvalidArgument(
                "-o ids prints items, and --sort and --reverse order what this command lists",
                "leave them out",
            )
        lacks = None if has_ids else "ids"
    if lacks is not None:
        others = [each for each in OutputFormat if not each.is_bare]
        raise InvalidArgument(
            f"-o {lacks} prints nothing of what this command lists",
            f"use one of {', '.join(others)}",
        )


def in_order(view: View[T], records: Iterable[T], options: OutputOptions) -> Iterable[T]:
    """The records in the requested order; reading the first one reads all of them.

    Raises:
        InvalidArgument: There is no such field.
    """
    if options.sort is None:
        return _reversed(records)
    (column, *_) = _columns(view, options.sort)
    return _sorted(records, column.raw, reverse=options.reverse)


def _reversed(records: Iterable[T]) -> Iterator[T]:
    yield from reversed(list(records))


def _sorted(records: Iterable[T], value: Callable[[T], Any], *, reverse: bool) -> Iterator[T]:
    """The records by a value; those without one come last."""
    pairs = [(value(record), record) for record in records]
    known = [pair for pair in pairs if pair[0] is not None]
    known.sort(key=lambda pair: _sort_key(pair[0]), reverse=reverse)
    yield from (record for _, record in known)
    yield from (record for each, record in pairs if each is None)


def _sort_key(value: Any) -> tuple[bool, float, bytes]:
    """Numbers by their value, before texts by their bytes."""
    if isinstance(value, int | float):
        return False, value, b""
    return True, 0, value if isinstance(value, bytes) else str(value).encode()


def _columns(view: View[T], name: str) -> list[Column[T]]:
    """The columns of a field: more than one if it has fields of its own."""
    inner = [f"{name}_{each}" for each in view.nested.get(name, ())]
    if inner:
        return [column for each in inner for column in _columns(view, each)]
    for column in (*view.all_columns, *view.columns):
        if column.name == name:
            return [column]
    if name not in {**view.fields(view.sample), **flat(view.fields(view.sample), view.nested)}:
        raise InvalidArgument(f"no field {name!r}", _known(view))

    def value(record: T) -> Any:
        record_fields = view.fields(record)
        value = {**record_fields, **flat(record_fields, view.nested)}[name]
        if value is None and (encoded := record_fields.get(f"{name}_b64")) is not None:
            return b64decode(encoded)
        return to_json(value).decode() if isinstance(value, dict) else value

    cut = Cut.MIDDLE if name in _NAMES else Cut.END
    return [Column(name.upper().replace("_", " "), value, field=name, cut=cut)]


def field_names(view: View[Any]) -> Sequence[str]:
    """The names that `--fields` and `--sort` take."""
    whole = view.fields(view.sample)
    return list(dict.fromkeys((*whole, *flat(whole, view.nested))))


def _known(view: View[Any]) -> str:
    return f"the fields are {', '.join(field_names(view))}"
