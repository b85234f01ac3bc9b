"""Declared fields: one list for each kind of record.

    ITEM_FIELDS = Fields(
        "An item",
        Field("queue", lambda item: item.queue, "the queue's name", is_bytes=True, cut=Cut.MIDDLE),
        Field("id", lambda item: item.item_id, "the item's ID", is_bytes=True, is_id=True),
        Field("bytes", lambda item: item.payload_bytes, "the size of the data", title="SIZE",
              format=lambda item: human.size(item.payload_bytes), right=True),
        Field("lease", lambda item: item.lease, "null if there is none", is_object=True),
        Field("lease.holder", holder_of, "who holds it, escaped", title="HOLDER"),
        ...
    )

The list gives JSON (objects in this order), CSV, TSV, tables, `--fields`, `--sort`, completion, the
reference and the help. A name with a dot is a field inside an object: `lease.holder` is
`lease_holder` in CSV and for `--fields`.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.output.escape import escaped, escaped_text, is_safe

S = TypeVar("S")
T = TypeVar("T")


class Cut(Enum):
    """Where a cell loses characters if the terminal is too narrow."""

    END = "end"
    MIDDLE = "middle"


class Field(NamedTuple, Generic[T]):
    """One field of a record, and one column of its tables.

    Attributes:
        name: Its name in JSON; `OUTER.INNER` inside an object.
        get: Returns its value: bytes, text, a number, a boolean, a list; None is null.
        help: What it means, for the help and the reference.
        title: The heading of its column; empty for the name in upper case.
        format: Returns the cell of a table; None for the value as in `-o plain`.
        right: True if the column is right-aligned.
        style: Returns the style of a cell, such as `red`, or None.
        cut: Where its cells are cut on a narrow terminal; None for nowhere.
        rank: The order in which columns are left out on a narrow terminal, 1 first; those with 0
            come after all others, the last one first.
        may_be_unknown: True if None means unknown rather than inapplicable: a column of unknown
            values is shown, an empty one is not.
        is_bytes: True if JSON has bytes that are not UTF-8 in `NAME_b64`; else bytes are escaped.
        is_object: True if it is the head of an object, whose fields follow; null if `get` returns
            None.
        is_json: True if the value is JSON text, which is written as it is.
        is_id: True if `-o ids` prints it.
        is_data: True if `-o data` prints it.
    """

    name: str
    get: Callable[[T], Any]
    help: str
    title: str = ""
    format: Callable[[T], str] | None = None
    right: bool = False
    style: Callable[[T], str | None] | None = None
    cut: Cut | None = None
    rank: int = 0
    may_be_unknown: bool = False
    is_bytes: bool = False
    is_object: bool = False
    is_json: bool = False
    is_id: bool = False
    is_data: bool = False

    @property
    def flat_name(self) -> str:
        """Its name in CSV and for `--fields`."""
        return self.name.replace(".", "_")

    @property
    def heading(self) -> str:
        """The heading of its column."""
        return self.title or self.flat_name.upper().replace("_", " ")

    def within(self, inner: "Callable[[S], T]") -> "Field[S]":
        """The same field of a record that contains this one, which `inner` returns."""
        get, cell, style = self.get, self.format, self.style
        return Field(
            *self._replace(
                get=lambda record: get(inner(record)),  # type: ignore[arg-type]
                format=cell and (lambda record: cell(inner(record))),  # type: ignore[arg-type]
                style=style and (lambda record: style(inner(record))),  # type: ignore[arg-type]
            )
        )

    def cell(self, record: T) -> str:
        """The cell of a table."""
        return plain(self.get(record)) if self.format is None else self.format(record)


class Fields(Generic[T]):
    """The fields of one kind of records.

    Args:
        title: What a record is, such as `An item`.
        fields: Its fields, in the order of JSON.
        chosen: The names that `--fields` gives, in their order; None for all fields.
        is_stream: True if they are written as they come, in no other order.
        has_other_ids: True if `-o ids` prints IDs that are not those of the records.
    """

    def __init__(
        self,
        title: str,
        *fields: Field[T],
        chosen: Sequence[str] | None = None,
        is_stream: bool = False,
        has_other_ids: bool = False,
    ) -> None:
        self.title = title
        self.all = fields
        self.chosen = chosen
        self.is_stream = is_stream
        self.has_other_ids = has_other_ids
        self.texts = tuple(field.name for field in fields if field.is_json)
        self.id = next((field for field in fields if field.is_id), None)
        self.data = next((field for field in fields if field.is_data), None)
        self._by_name = {field.flat_name: field for field in fields}
        # The names of each object's fields.
        self._objects = {
            head.name: [each.name.split(".")[1] for each in self._inside(head)]
            for head in fields
            if head.is_object
        }

    def __getitem__(self, name: str) -> Field[T]:
        return self._by_name[name]

    def get(self, column: Field[T]) -> Field[T]:
        """The declared field of a column, or the column itself if there is none."""
        return self._by_name.get(column.flat_name, column)

    def only(self, names: Sequence[str]) -> "Fields[T]":
        """The same records with these fields only.

        Raises:
            InvalidArgument: There is no such field, or none is named.
        """
        if not names:
            raise InvalidArgument("--fields names no field", self.known)
        fields = self._like(*self.all, chosen=names)
        fields.columns()
        return fields

    def json(self, record: T) -> dict[str, Any]:
        """A record as a JSON object."""
        values: dict[str, Any] = {}
        for field in self.all:
            value = field.get(record)
            if field.is_object:
                values[field.name] = None if value is None else {}
                continue
            outer, _, name = field.name.rpartition(".")
            target = values[outer] if outer else values
            if target is None:
                continue
            if field.is_bytes:
                target.update(bytes_fields(name, value))
            else:
                target[name] = escaped(value) if isinstance(value, bytes) else value
        if self.chosen is None:
            return values
        flat = self._flat(values)
        return {name: values[name] if name in values else flat[name] for name in self.chosen}

    def flat(self, record: T) -> dict[str, Any]:
        """A record as a flat object: objects become `OUTER_INNER`, lists are joined by spaces."""
        return self._flat(self.json(record))

    def _flat(self, values: dict[str, Any]) -> dict[str, Any]:
        flat: dict[str, Any] = {}
        for name, value in values.items():
            if name in self._objects:
                for inner in self._objects[name]:
                    flat[f"{name}_{inner}"] = _joined((value or {}).get(inner))
            else:
                flat[name] = _joined(value)
        return flat

    @property
    def names(self) -> list[str]:
        """The names that `--fields` and `--sort` take."""
        return [*self._top_names, *(field.flat_name for field in self.all if "." in field.name)]

    @property
    def flat_names(self) -> list[str]:
        """The names of `flat`, in order: the header of CSV."""
        names = self._top_names if self.chosen is None else self.chosen
        return [
            each
            for name in names
            for each in (
                [f"{name}_{inner}" for inner in self._objects[name]]
                if name in self._objects
                else [name]
            )
        ]

    @property
    def _top_names(self) -> list[str]:
        return [
            name
            for field in self.all
            if "." not in field.name
            for name in [field.name, f"{field.name}_b64"][: 1 + field.is_bytes]
        ]

    def columns(self) -> list[Field[T]]:
        """The columns of the chosen fields, or of all."""
        if self.chosen is None:
            return [field for field in self.all if not field.is_object]
        return [column for name in self.chosen for column in self.columns_of(name)]

    def plus(self, *more: Field[T]) -> "Fields[T]":
        """The same records with further fields."""
        return self._like(*self.all, *more)

    def columns_of(self, name: str) -> list[Field[T]]:
        """The columns of a field: several if it is an object.

        Raises:
            InvalidArgument: There is no such field.
        """
        field = self._by_name.get(name)
        if field is not None:
            return self._inside(field) if field.is_object else [field]
        encoded = self._by_name.get(name.removesuffix("_b64"))
        if encoded is None or not encoded.is_bytes or not name.endswith("_b64"):
            raise InvalidArgument(f"no field {name!r}", self.known)
        get = encoded.get
        return [Field(name, lambda record: bytes_fields("", get(record))["_b64"], encoded.help)]

    @property
    def known(self) -> str:
        """The hint that lists the fields."""
        return f"the fields are {', '.join(self.names)}"

    def _like(self, *fields: Field[T], chosen: Sequence[str] | None = None) -> "Fields[T]":
        return Fields(
            self.title,
            *fields,
            chosen=chosen,
            is_stream=self.is_stream,
            has_other_ids=self.has_other_ids,
        )

    def _inside(self, head: Field[T]) -> list[Field[T]]:
        return [each for each in self.all if each.name.startswith(f"{head.name}.")]


def bytes_fields(name: str, raw: bytes | None) -> dict[str, str | None]:
    """The fields of a byte string: `name` if it is UTF-8, else `name_b64`; the other is null."""
    if raw is None:
        return {name: None, f"{name}_b64": None}
    try:
        return {name: raw.decode("utf-8"), f"{name}_b64": None}
    except UnicodeDecodeError:
        return {name: None, f"{name}_b64": b64encode(raw).decode("ascii")}


def _joined(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else value


def plain(value: Any) -> str:
    """A field of a line: a raw number, escaped text, or nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return escaped(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | list | tuple):
        return escaped_text(_joined(value))
    return str(value)


def to_json(value: Any, texts: Sequence[str] = ()) -> bytes:
    """JSON on one line; characters that could control or deceive a terminal are escaped.

    Args:
        value: The value.
        texts: The fields of an object whose values are JSON text, which is written as it is.
    """
    if any(value.get(name) is not None for name in texts):
        pairs = (
            f"{_encode(name)}: {inner if name in texts and inner is not None else _encode(inner)}"
            for name, inner in value.items()
        )
        text = f"{{{', '.join(pairs)}}}"
    else:
        text = _encode(value)
    if not text.isprintable():
        # The encoder escapes only the controls below space; the others can only be in strings.
        text = "".join(
            character if is_safe(character) else json.dumps(character)[1:-1] for character in text
        ).replace("\x7f", "\\u007f")
    return text.encode("utf-8")


_encode = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": ")).encode
