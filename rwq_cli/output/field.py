"""Declared fields: one list for each kind of record.

    ITEM_FIELDS = Fields(
        "An item",
        field("id", "item_id", "the item's ID", ID),
        field("bytes", "payload_bytes", "the size of the data", SIZE, "SIZE"),
        field("lease", "lease", "null if there is none", is_object=True),
        field("lease.holder", "lease.holder", "who holds it, escaped", title="HOLDER"),
        ...
    )

The list gives JSON (objects in this order), CSV, TSV, tables, `--fields`, `--sort`, `--by`,
completion, the reference and the help. A name with a dot inside is a field of an object:
`lease.holder` is `lease_holder` in CSV and for `--fields`. A name that begins with a dot is a path
into JSON data: `.tenant.id`.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from enum import Enum
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Self, TypeVar

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.output import human
from rwq_cli.output.escape import JsonText, apply_escapes, escaped, escaped_text
from rwq_cli.output.options import OutputFormat

T = TypeVar("T")


class Cut(Enum):
    """Where a cell is cut if the terminal is too narrow."""

    END = "end"
    MIDDLE = "middle"


class Field(NamedTuple, Generic[T]):
    """One field of a record, and one column of its tables."""

    # Its name in JSON; `OUTER.INNER` inside an object.
    name: str
    # Returns its value: bytes, text, a number, a boolean, a list; None is null.
    get: Callable[[T], Any]
    # What it means, for the help and the reference.
    help: str
    # The heading of its column; empty for the name in upper case.
    title: str = ""
    # Returns the cell of a table; None for the value as in `-o plain`.
    format: Callable[[T], str] | None = None
    # True if the column is right-aligned.
    right: bool = False
    # Returns the style of a cell, such as `red`, or None.
    style: Callable[[T], str | None] | None = None
    # Where its cells are cut on a narrow terminal; None for nowhere.
    cut: Cut | None = None
    # Columns that do not fit are left out by rank, 1 first. Those of rank 0 are left out last, from
    # the right.
    rank: int = 0
    # True if None means unknown rather than inapplicable: a column of unknown values is shown, an
    # empty one is not.
    may_be_unknown: bool = False
    # True if JSON has bytes that are not UTF-8 in `NAME_b64`; else bytes are escaped.
    is_bytes: bool = False
    # True if it is the head of an object, whose fields follow; null if `get` returns None.
    is_object: bool = False
    # True if `-o ids` prints it.
    is_id: bool = False
    # True if `-o data` prints it.
    is_data: bool = False
    # The field of an age whose greatest value is counted beside its own values.
    longest: str | None = None

    @property
    def flat_name(self) -> str:
        return self.name if self.name.startswith(".") else self.name.replace(".", "_")

    @property
    def split_name(self) -> tuple[str, str]:
        """The object that it is in, empty for none, and its name there."""
        outer, _, name = self.name.rpartition(".")
        return ("", self.name) if self.name.startswith(".") else (outer, name)

    @property
    def heading(self) -> str:
        return self.title or self.flat_name.upper().replace("_", " ")

    def within(self, inner: Callable[[Any], T]) -> "Field[Any]":
        get, cell, style = self.get, self.format, self.style
        return self._replace(
            get=lambda record: get(inner(record)),
            format=cell and (lambda record: cell(inner(record))),
            style=style and (lambda record: style(inner(record))),
        )

    def cell(self, record: T) -> str:
        """Return the text of a cell: `-` for nothing, a line for each part of a list."""
        if self.format is not None:
            return self.format(record)
        value = self.get(record)
        if isinstance(value, list | tuple):
            return "\n".join(map(format_plain, value))
        return "-" if value is None else format_plain(value)


def attribute(path: str) -> Callable[[Any], Any]:
    """Return a getter for an attribute or a nested one: `lease.holder`; None if there is none."""
    if "." not in path:
        return attrgetter(path)
    names = path.split(".")

    def get(record: Any) -> Any:
        for name in names:
            record = None if record is None else getattr(record, name)
        return record

    return get


# What fields have in common by their kind of value: names, other texts, numbers and times. `show`
# formats a value as a cell.
NAME = {"is_bytes": True, "cut": Cut.MIDDLE}
ID = {**NAME, "is_id": True}
TEXT = {"is_bytes": True, "cut": Cut.END}
COUNT = {"show": human.count, "right": True}
SIZE = {"show": human.size, "right": True}
DURATION = {"show": human.duration, "right": True}
AGO = {"show": human.ago, "right": True}
MOMENT = {"show": lambda unix_ms: "-" if unix_ms is None else human.moment(unix_ms)}


def field(
    name: str,
    get: str | Callable[[Any], Any],
    help: str,
    kind: Mapping[str, Any] = MappingProxyType({}),
    title: str = "",
    rank: int = 0,
    **column: Any,
) -> Field[Any]:
    """Make a field of this kind; its value is an attribute unless `get` is a function."""
    value = attribute(get) if isinstance(get, str) else get
    column = {"title": title, "rank": rank, **kind, **column}
    if (show := column.pop("show", None)) is not None:
        column.setdefault("format", lambda record: show(value(record)))
    return Field(name, value, help, **column)


class Fields(Generic[T]):
    """The fields of one kind of record, in the order of JSON."""

    # With `is_stream`, records are written as they come, in no other order; with `has_summary`,
    # JSON is counts of them; with `has_other_ids`, `-o ids` prints IDs that are not theirs.
    def __init__(
        self,
        title: str,
        *fields: Field[T],
        is_stream: bool = False,
        has_summary: bool = False,
        has_other_ids: bool = False,
    ) -> None:
        self.title, self.is_stream = title, is_stream
        self.has_summary, self.has_other_ids = has_summary, has_other_ids
        self.is_chosen = False
        self.id = next((field for field in fields if field.is_id), None)
        self.data = next((field for field in fields if field.is_data), None)
        self._by_name: dict[str, Field[T]] = {}
        self._set(fields)

    def _set(self, fields: Iterable[Field[T]]) -> Self:
        self.all = tuple(fields)
        self._split = [(field, *field.split_name) for field in self.all]
        self._by_name = {**self._by_name, **{field.flat_name: field for field in self.all}}
        return self

    def has(self, output: OutputFormat) -> bool:
        """Return whether `-o ids` or `-o data` has something to print."""
        if output is OutputFormat.IDS:
            return self.id is not None or self.has_other_ids
        return self.data is not None

    def __getitem__(self, name: str) -> Field[T]:
        return self._by_name[name]

    def shown_as(self, columns: Iterable[Field[T]]) -> Self:
        """Return the same fields, with these columns in place of the fields of their names."""
        replacements = {column.flat_name: column for column in columns}
        return copy(self)._set(replacements.get(field.flat_name, field) for field in self.all)

    def plus(self, *more: Field[T]) -> Self:
        return copy(self)._set((*self.all, *more))

    def only(self, names: Sequence[str]) -> Self:
        """Return only the fields with these names; raises `InvalidArgument` for an unknown one."""
        if not names:
            raise InvalidArgument("--fields names no field", self.known)
        fields = copy(self)._set(field for name in names for field in self._named(name))
        fields.is_chosen = True
        return fields

    def json(self, record: T) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for field, outer, name in self._split:
            value = field.get(record)
            if field.is_object:
                values[name] = None if value is None else {}
                continue
            target = values[outer] if outer else values
            if target is None:
                continue
            if field.is_bytes:
                both = bytes_fields(name, value)
                target.update({name: both[name]} if self.is_chosen and not outer else both)
            else:
                target[name] = escaped(value) if isinstance(value, bytes) else value
        return values

    def rows(self, record: T, *names: str) -> list[tuple[str, str, str | None]]:
        """Return the lines of a section: headings, cells and styles of fields that have a value."""
        cells = [(field, field.cell(record)) for field in map(self.__getitem__, names)]
        return [
            (field.heading.lower(), cell, field.style and field.style(record))
            for field, cell in cells
            if cell not in ("", "-")
        ]

    def flat(self, record: T) -> dict[str, Any]:
        flat = {}
        for column in self.columns():
            value, name = column.get(record), column.flat_name
            values = bytes_fields(name, value) if column.is_bytes else {name: value}
            flat.update({name: values[name] for name in self._names_of(column)})
        return flat

    @property
    def flat_names(self) -> list[str]:
        return [name for column in self.columns() for name in self._names_of(column)]

    def _names_of(self, column: Field[T]) -> list[str]:
        has_both = column.is_bytes and not self.is_chosen and "." not in column.name
        return [column.flat_name, f"{column.flat_name}_b64"][: 1 + has_both]

    @property
    def names(self) -> list[str]:
        fields = sorted(self.all, key=lambda field: "." in field.name)
        return [name for field in fields for name in self._names_of(field)]

    def columns(self) -> list[Field[T]]:
        return [field for field in self.all if not field.is_object]

    def columns_of(self, name: str) -> list[Field[T]]:
        return [field for field in self._named(name) if not field.is_object]

    def _named(self, name: str) -> list[Field[T]]:
        # `holder` stands for `lease_holder` if no other field has that name.
        inner = [field for field in self.all if field.split_name[1] == name]
        field = inner[0] if len(inner) == 1 else self._by_name.get(name)
        if field is not None and field.is_object:
            return [field, *(other for other in self.all if other.name.startswith(f"{name}."))]
        if field is not None:
            # It is shown under the name that was asked for.
            return [field._replace(name=name, is_bytes=field.is_bytes and field.name == name)]
        if name.startswith(".") and self.data is not None:
            return [path_field(name, self.data.get)]
        encoded = self._by_name.get(name.removesuffix("_b64"))
        if encoded is None or not encoded.is_bytes or not name.endswith("_b64"):
            raise InvalidArgument(f"no field {name!r}", self.known)
        get = encoded.get
        return [Field(name, lambda record: bytes_fields("", get(record))["_b64"], encoded.help)]

    def column_by(self, name: str) -> Field[T]:
        """Return the only column of a field."""
        columns = self.columns_of(name)
        if len(columns) != 1:
            names = " or ".join(column.flat_name for column in columns)
            raise InvalidArgument(f"{name} has several fields", f"use {names}")
        return columns[0]

    @property
    def known(self) -> str:
        paths = "" if self.data is None else "; .NAME is a path into JSON data"
        return f"the fields are {', '.join(self.names)}{paths}"


def path_field(name: str, data_of: Callable[[T], bytes | None]) -> Field[T]:
    # Its parser takes as long to import as a short command takes to run.
    from rwq_cli.output.json_text import parse_path, value_at

    path = parse_path(name)

    def value(record: T) -> str | None:
        data = data_of(record)
        return None if data is None else value_at(data, path)

    return field(name, value, "a value inside JSON data", title=name, cut=Cut.END)


def count_by_value(
    records: Iterable[Any], fields: Fields[Any], name: str
) -> tuple[Iterator[Sequence[Any]], Fields[Sequence[Any]]]:
    """Count records by the values of a field, most frequent first; also returns their fields."""
    column = fields.column_by(name)
    value = column.within(itemgetter(0))
    groups_of: list[Field[Sequence[Any]]] = [
        value._replace(name=column.flat_name, rank=0, is_id=False, is_data=False),
        field("count", itemgetter(1), "the number of records with this value", COUNT),
    ]
    age = None if column.longest is None else fields[column.longest].get
    if age is not None:
        help = "the longest time that one of them has been held"
        groups_of.append(field("longest_seconds", itemgetter(2), help, DURATION, "LONGEST"))
    grouped: Fields[Sequence[Any]] = Fields(f"{fields.title}, counted", *groups_of)

    def groups() -> Iterator[Sequence[Any]]:
        # Each group is its first record, its size, and the greatest age: a list, so that counting
        # allocates nothing.
        by_value: dict[object, list[Any]] = {}
        for record in records:
            content = column.get(record)
            # The text "3" is not the number 3.
            key = (type(content), format_plain(content) if isinstance(content, list) else content)
            group = by_value.setdefault(key, [record, 0, None])
            group[1] += 1
            if age is not None and (age_s := age(record)) is not None:
                group[2] = max(group[2] or 0, age_s)
        yield from sorted(by_value.values(), key=itemgetter(1), reverse=True)

    return groups(), grouped


def bytes_fields(name: str, raw: bytes | None) -> dict[str, str | None]:
    if raw is None:
        return {name: None, f"{name}_b64": None}
    try:
        return {name: raw.decode("utf-8"), f"{name}_b64": None}
    except UnicodeDecodeError:
        return {name: None, f"{name}_b64": b64encode(raw).decode("ascii")}


def format_plain(value: Any) -> str:
    """Format a value as a field of a line: a raw number, escaped text, or nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return escaped(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple | dict):
        return to_json(value).decode()
    return escaped_text(str(value))


def to_json(value: Any) -> bytes:
    """Encode JSON on one line, escaping characters that could control or deceive a terminal."""
    # The standard library's encoder: redis-py has imported it, and msgspec's takes 12 ms to import.
    if isinstance(value, dict) and JsonText in map(type, value.values()):
        pairs = (
            f"{_encode(name)}: {inner if isinstance(inner, JsonText) else _encode(inner)}"
            for name, inner in value.items()
        )
        text = f"{{{', '.join(pairs)}}}"
    else:
        text = _encode(value)
    return apply_escapes(text, _escape).encode("utf-8")


def _escape(character: str) -> str:
    # Only strings can hold such characters, and JSON itself escapes those below the space.
    return json.dumps(character)[1:-1].replace("\x7f", "\\u007f")


_encode = json.JSONEncoder(ensure_ascii=False).encode
