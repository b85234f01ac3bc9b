"""Items: their fields, and the columns of their listings."""

from codecs import utf_8_decode
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache

from rwq_cli.core.model import Item, Lease, State
from rwq_cli.core.state.rules import is_guard
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.field import (
    COUNT,
    DURATION,
    ID,
    MOMENT,
    NAME,
    SIZE,
    TEXT,
    Cut,
    Field,
    Fields,
    field,
)


def state_style(state: State) -> str | None:
    if state.is_broken:
        return "red"
    return "green" if state is State.LEASED else None


def preview_text(item: Item) -> str | None:
    if item.preview is None:
        return None
    preview = item.preview
    if not preview.isascii() and (item.payload_bytes or 0) > len(preview):
        # The last character may be cut.
        with suppress(UnicodeDecodeError):
            preview = preview[: utf_8_decode(preview, "strict", False)[1]]
    return escaped(preview)


def session_lease(item: Item) -> Lease | None:
    return None if is_guard(item.lease) else item.lease


def _holder(item: Item) -> str:
    lease = session_lease(item)
    return "-" if lease is None else escaped(lease.holder)


def _time_left(item: Item) -> str:
    lease = session_lease(item)
    if lease is None:
        return "-"
    return "no expiry" if lease.ttl_ms is None else human.duration(lease.ttl_ms / 1000)


def _data_json(item: Item) -> str | None:
    if item.data is None:
        return None
    # Its parser takes as long to import as a short command takes to run.
    from rwq_cli.output.json_text import json_text

    return json_text(item.data)


_STATE = {"style": lambda item: state_style(item.state)}
_DATA = {**TEXT, "format": lambda item: preview_text(item) or "", "is_data": True}
_PREVIEW = {"cut": Cut.END, "may_be_unknown": True}
# What is leased was last used when it was taken.
_AGE = {**DURATION, "may_be_unknown": True}
_PLACE = {"right": True}
_HOLDER = {"format": _holder, "cut": Cut.MIDDLE, "longest": "idle_seconds"}
_LEFT = {"format": _time_left, "right": True}

ITEM_FIELDS: Fields[Item] = Fields(
    "An item",
    field("queue", "queue", "the queue's name", NAME, rank=8),
    field("id", "item_id", "the item's ID", ID),
    field("state", "state", "one of the states", _STATE, rank=9),
    field("bytes", "payload_bytes", "the size of the data", SIZE, "SIZE", 1, may_be_unknown=True),
    field("data", "data", "the data, if requested (`lease`, `--data`)", _DATA, rank=3),
    field("preview", preview_text, "the first 200 bytes of the data, escaped", _PREVIEW, "DATA", 3),
    field("position", "position", "0 = next to be leased; null if not waiting", _PLACE, "#", 5),
    field("idle_seconds", "idle_s", "since it was added, used or buried", _AGE, "AGE", rank=8),
    field("lease", "lease", "or null; a guard of a delayed or buried item counts", is_object=True),
    field("lease.holder", "lease.holder", "who holds it, escaped", _HOLDER, "HOLDER", 6),
    field("lease.ttl_ms", "lease.ttl_ms", "the time left; null = no expiry", _LEFT, "TIME LEFT", 7),
    field("due_ms", "due_ms", "when a delayed item is due", MOMENT, "DUE", rank=7),
    field("buried_ms", "buried_ms", "when a buried item was buried", MOMENT, "BURIED", rank=5),
    field("reason", "reason", "why a buried item was buried", TEXT, rank=6),
    field(
        "returns", "returns", "how often it was returned, or failed in `rwq work`", COUNT, rank=4
    ),
    field("data_json", _data_json, "the JSON data, if requested, with every digit", cut=Cut.END),
)

Columns = Sequence[Field[Item]]

# The columns of each listing; a table has RETURNS before the first of `_EXTRAS`.
_OF_LEASE = ("id", "state", "lease_holder", "lease_ttl_ms")
_EXTRAS = ("idle_seconds", "bytes", "preview")
_LISTINGS = {
    "waiting": ("position", "id", *_EXTRAS),
    "delayed": ("id", "due_ms", *_EXTRAS),
    "due": ("id", "due_ms", *_EXTRAS),
    "buried": ("id", "buried_ms", "reason", "bytes", "preview"),
    # Leasing an item reads its data.
    "leased now": ("id", "lease_ttl_ms", "bytes", "data"),
}
# What is in processing has been held since it was taken.
_HELD = ("leases", "processing", "leased", "held")
# Any other listing. For a delayed item, TIME LEFT is the time until it is due.
_MIXED = (*_OF_LEASE, *_EXTRAS)
WIDE = (
    *("queue", "position", "id", "state", "lease_holder", "lease_ttl_ms", "due_ms", "buried_ms"),
    *("reason", "returns", "idle_seconds", "bytes", "preview"),
)


def columns_for(
    listing: str | None, now_ms: Callable[[], int] = lambda: 0, *, data: bool = False
) -> Columns:
    # A table has the data itself, or a preview of it. All rows use the same time, which is read for
    # the first cell that needs it.
    now_ms = cache(now_ms)

    def due(item: Item) -> str:
        return human.due(None if item.due_ms is None else (item.due_ms - now_ms()) / 1000)

    def buried(item: Item) -> str:
        return human.ago(None if item.buried_ms is None else (now_ms() - item.buried_ms) / 1000)

    def time_left(item: Item) -> str:
        is_delayed = item.state in (State.DELAYED, State.DUE) and session_lease(item) is None
        return due(item) if is_delayed else _time_left(item)

    formats = {"due_ms": due, "buried_ms": buried, "lease_ttl_ms": time_left}
    names = _LISTINGS.get(listing or "", _MIXED)
    columns = [ITEM_FIELDS["data" if data and name == "preview" else name] for name in names]
    if listing in _HELD:
        columns = [
            column._replace(title="HELD") if column.name == "idle_seconds" else column
            for column in columns
        ]
    return [
        column._replace(format=formats.get(column.flat_name, column.format)) for column in columns
    ]


def plain_order(columns: Columns, listing: str | None) -> Columns:
    """Return the columns in the order of `-o plain`: scripts address them by number."""
    # The ID comes first, the queue, if there are several, last. `leases` had no HELD at first, and
    # the columns after it stay where they are.
    order = {"id": -1, "queue": 1}
    fixed = [
        column for column in columns if not (listing == "leases" and column.name == "idle_seconds")
    ]
    return sorted(fixed, key=lambda column: order.get(column.name, 0))


PLAIN_OF_SEVERAL = {"of several queues": "the same, then queue"}


def plain_names(listing: str | None) -> str:
    """Return the fields of a line of `-o plain`, for the help."""
    columns = plain_order(columns_for(listing), listing)
    return ", ".join(column.flat_name for column in columns)


def with_returns(columns: Columns) -> Columns:
    extras = (*_EXTRAS, "data")
    at = next((at for at, column in enumerate(columns) if column.name in extras), len(columns))
    return [*columns[:at], ITEM_FIELDS["returns"], *columns[at:]]
