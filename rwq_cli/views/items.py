"""Items: the columns of the listings, and the JSON object."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from rwq_cli.core.model import Item, Lease, State
from rwq_cli.core.state.rules import is_guard
from rwq_cli.output import human
from rwq_cli.output.encode import JsonText, bytes_fields
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Column, Cut, View


def state_style(state: State) -> str | None:
    """Red for broken states, green for leased."""
    if state.is_broken:
        return "red"
    return "green" if state is State.LEASED else None


def preview_text(item: Item) -> str | None:
    """The preview, escaped, without a character that is cut off at the end."""
    if item.preview is None:
        return None
    preview = item.preview
    if item.payload_bytes is not None and item.payload_bytes > len(preview):
        try:
            preview.decode()
        except UnicodeDecodeError as error:
            if error.end == len(preview) and error.reason == "unexpected end of data":
                preview = preview[: error.start]
    return escaped(preview)


def session_lease(item: Item) -> Lease | None:
    """The lease of a session; None for a guard."""
    return None if is_guard(item.lease) else item.lease


def _holder(item: Item) -> str:
    lease = session_lease(item)
    return "-" if lease is None else escaped(lease.holder)


def _time_left(item: Item) -> str:
    lease = session_lease(item)
    if lease is None:
        return "-"
    return "no expiry" if lease.ttl_ms is None else human.duration(lease.ttl_ms / 1000)


QUEUE: Column[Item] = Column("QUEUE", lambda item: item.queue, rank=8, cut=Cut.MIDDLE)
ID: Column[Item] = Column("ID", lambda item: item.item_id, cut=Cut.MIDDLE)
POSITION: Column[Item] = Column(
    "#",
    lambda item: item.position,
    lambda item: "-" if item.position is None else str(item.position),
    right=True,
    field="position",
    rank=5,
)
STATE: Column[Item] = Column(
    "STATE", lambda item: item.state.value, style=lambda item: state_style(item.state), rank=9
)
LAST_USE: Column[Item] = Column(
    "LAST USE",
    lambda item: item.idle_s,
    lambda item: human.ago(item.idle_s),
    right=True,
    field="idle_seconds",
    rank=1,
)
HOLDER: Column[Item] = Column(
    "HOLDER",
    lambda item: None if item.lease is None else item.lease.holder,
    _holder,
    field="lease_holder",
    rank=6,
    cut=Cut.MIDDLE,
)
TIME_LEFT: Column[Item] = Column(
    "TIME LEFT",
    lambda item: None if item.lease is None else item.lease.ttl_ms,
    _time_left,
    right=True,
    field="lease_ttl_ms",
    rank=7,
)
RETURNS: Column[Item] = Column(
    "RETURNS",
    lambda item: item.returns,
    lambda item: human.count(item.returns),
    right=True,
    rank=4,
)
SIZE: Column[Item] = Column(
    "SIZE",
    lambda item: item.payload_bytes,
    lambda item: human.size(item.payload_bytes),
    right=True,
    field="bytes",
    rank=2,
)
DATA: Column[Item] = Column(
    "DATA",
    lambda item: preview_text(item) if item.data is None else item.data,
    lambda item: preview_text(item) or "",
    field="preview",
    rank=3,
    cut=Cut.END,
)
DUE: Column[Item] = Column(
    "DUE",
    lambda item: item.due_ms,
    lambda item: "-" if item.due_ms is None else human.moment(item.due_ms),
    field="due_ms",
    rank=7,
)
BURIED_AT: Column[Item] = Column(
    "BURIED",
    lambda item: item.buried_ms,
    lambda item: "-" if item.buried_ms is None else human.moment(item.buried_ms),
    field="buried_ms",
    rank=5,
)
REASON: Column[Item] = Column("REASON", lambda item: item.reason, rank=6, cut=Cut.END)

ALL_COLUMNS = (
    *(QUEUE, POSITION, ID, STATE, HOLDER, TIME_LEFT, DUE, BURIED_AT, REASON, RETURNS),
    *(LAST_USE, SIZE, DATA),
)
LEASES_COLUMNS = (ID, STATE, HOLDER, TIME_LEFT, SIZE, DATA)
# A lease reads the data.
LEASED_COLUMNS = (ID, TIME_LEFT, SIZE, DATA._replace(field="data"))


def columns_for(which: str | None, now_ms: Callable[[], int]) -> tuple[Column[Item], ...]:
    """The columns for items in one state, as named by `rwq ls`, or in several.

    `now_ms` returns the server's clock; it is called once, and only for a table.
    """
    # All rows use the same time.
    now_ms = cache(now_ms)

    def due(item: Item) -> str:
        return human.due(None if item.due_ms is None else (item.due_ms - now_ms()) / 1000)

    def buried(item: Item) -> str:
        return human.ago(None if item.buried_ms is None else (now_ms() - item.buried_ms) / 1000)

    def time_left(item: Item) -> str:
        is_delayed = item.state in (State.DELAYED, State.DUE) and session_lease(item) is None
        return due(item) if is_delayed else _time_left(item)

    if which == "waiting":
        return (POSITION, ID, LAST_USE, SIZE, DATA)
    if which == "delayed":
        return (ID, DUE._replace(human=due), LAST_USE, SIZE, DATA)
    if which == "buried":
        return (ID, BURIED_AT._replace(human=buried), REASON, SIZE, DATA)
    # For a delayed item, TIME LEFT is the time until it is due.
    return (ID, STATE, HOLDER, TIME_LEFT._replace(human=time_left), LAST_USE, SIZE, DATA)


def item_fields(item: Item) -> dict[str, Any]:
    """An item's JSON object."""
    lease = None
    if item.lease is not None:
        lease = {"holder": escaped(item.lease.holder), "ttl_ms": item.lease.ttl_ms}
    return {
        **bytes_fields("queue", item.queue),
        **bytes_fields("id", item.item_id),
        "state": item.state.value,
        "bytes": item.payload_bytes,
        **bytes_fields("data", item.data),
        "preview": preview_text(item),
        "position": item.position,
        "idle_seconds": item.idle_s,
        "lease": lease,
        "due_ms": item.due_ms,
        "buried_ms": item.buried_ms,
        **bytes_fields("reason", item.reason),
        "returns": item.returns,
        "data_json": None if item.data is None else _json_text(item.data),
    }


def _json_text(data: bytes) -> JsonText | None:
    # Its parser takes as long to import as a short command takes to run.
    from rwq_cli.output.json_text import json_text

    return json_text(data)


ITEM_NESTED = {"lease": ("holder", "ttl_ms")}


# Scripts address fields by number: the ID is the first, and the queue, of several, the last.
_ORDER_IN_PLAIN = {ID.name: -1, QUEUE.name: 1}


def plain_order(columns: Sequence[Column[Item]]) -> Sequence[Column[Item]]:
    """The columns of `-o plain`."""
    return sorted(columns, key=lambda column: _ORDER_IN_PLAIN.get(column.name, 0))


def plain_names(columns: Sequence[Column[Item]]) -> str:
    """The fields of a line of `-o plain`, for the help."""
    return ", ".join(column.name for column in plain_order(columns))


def _with_returns(columns: Sequence[Column[Item]]) -> Sequence[Column[Item]]:
    """The columns of a table, with RETURNS, which shows items that keep coming back."""
    extras = (LAST_USE.name, SIZE.name, DATA.name, LEASED_COLUMNS[-1].name)
    at = next((at for at, column in enumerate(columns) if column.name in extras), len(columns))
    return [*columns[:at], RETURNS, *columns[at:]]


def item_view(columns: Sequence[Column[Item]]) -> View[Item]:
    """Items with these columns."""
    own = {column.name: column for column in columns}
    return View(
        item_fields,
        lambda item: item.item_id,
        Item(b"", b"", State.GONE),
        _with_returns(columns),
        data=lambda item: item.data,
        nested=ITEM_NESTED,
        plain_columns=plain_order(columns),
        all_columns=[own.get(column.name, column) for column in ALL_COLUMNS],
    )
