"""How items, outcomes, repairs and counts look, in every format."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from rwq_cli.core.model import CleanAction, Counts, Item, Lease, Outcome, Repair, State, Status
from rwq_cli.core.state.rules import is_guard
from rwq_cli.output import human
from rwq_cli.output.encode import bytes_fields
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Column, View

# States that want somebody to do something.
_BROKEN = frozenset(
    {
        State.ABANDONED,
        State.ORPHANED,
        State.GHOST,
        State.HELD,
        State.DUPLICATED,
        State.STRAY_LEASE,
        State.WRONG_TYPE,
    }
)


def state_style(state: State) -> str | None:
    """Red for what is broken, green for what is being worked on."""
    if state in _BROKEN:
        return "red"
    return "green" if state is State.LEASED else None


def preview_text(item: Item) -> str | None:
    """The preview, escaped; a character that its end cuts in two is left out."""
    if item.preview is None:
        return None
    whole = item.preview
    if item.payload_bytes is not None and item.payload_bytes > len(whole):
        try:
            whole.decode()
        except UnicodeDecodeError as error:
            if error.end == len(whole) and error.reason == "unexpected end of data":
                whole = whole[: error.start]
    return escaped(whole)


def _moment(unix_ms: int | None) -> str:
    return "-" if unix_ms is None else human.moment(unix_ms)


def _session(item: Item) -> Lease | None:
    """The lease that somebody holds: a guard of ours is nobody's."""
    return None if is_guard(item.lease) else item.lease


def _holder(item: Item) -> str:
    lease = _session(item)
    return "-" if lease is None else escaped(lease.holder)


def _time_left(item: Item) -> str:
    lease = _session(item)
    if lease is None:
        return "-"
    if lease.ttl_ms is None:
        return "no expiry"
    return human.duration(lease.ttl_ms / 1000)


QUEUE: Column[Item] = Column(
    "QUEUE", lambda i: escaped(i.queue), lambda i: escaped(i.queue), shrinks=4
)
ID: Column[Item] = Column("ID", lambda i: escaped(i.item_id), lambda i: escaped(i.item_id))
POSITION: Column[Item] = Column(
    "#",
    lambda i: "-" if i.position is None else str(i.position),
    lambda i: i.position,
    right=True,
)
STATE: Column[Item] = Column(
    "STATE", lambda i: i.state.value, lambda i: i.state.value, style=lambda i: state_style(i.state)
)
LAST_USE: Column[Item] = Column(
    "LAST USE", lambda i: human.ago(i.idle_s), lambda i: i.idle_s, right=True, shrinks=3
)
HOLDER: Column[Item] = Column(
    "HOLDER",
    _holder,
    lambda i: None if i.lease is None else escaped(i.lease.holder),
    shrinks=2,
)
TIME_LEFT: Column[Item] = Column(
    "TIME LEFT",
    _time_left,
    lambda i: None if i.lease is None else i.lease.ttl_ms,
    right=True,
)
SIZE: Column[Item] = Column(
    "SIZE", lambda i: human.size(i.payload_bytes), lambda i: i.payload_bytes, right=True
)
DATA: Column[Item] = Column(
    "DATA",
    lambda i: preview_text(i) or "",
    lambda i: preview_text(i) if i.data is None else escaped(i.data),
    shrinks=1,
)


def due_column(now_ms: Callable[[], int]) -> Column[Item]:
    """When delayed items are due; for people how far off that is by the server's clock."""

    return Column("DUE", lambda item: _due(item, now_ms), lambda item: item.due_ms)


def time_left_column(now_ms: Callable[[], int]) -> Column[Item]:
    """How long leases last; for people also when delayed items among them are due."""

    def said(item: Item) -> str:
        is_delayed = item.state in (State.DELAYED, State.DUE) and _session(item) is None
        return _due(item, now_ms) if is_delayed else TIME_LEFT.human(item)

    return replace(TIME_LEFT, human=said)


def _due(item: Item, now_ms: Callable[[], int]) -> str:
    return human.due(None if item.due_ms is None else (item.due_ms - now_ms()) / 1000)


BURIED_AT: Column[Item] = Column("BURIED", lambda i: _moment(i.buried_ms), lambda i: i.buried_ms)
REASON: Column[Item] = Column(
    "REASON",
    lambda i: "" if i.reason is None else escaped(i.reason),
    lambda i: None if i.reason is None else escaped(i.reason),
    shrinks=2,
)


def item_fields(item: Item) -> dict[str, Any]:
    """An item's JSON object, as the contract names its fields."""
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
    }


_NO_ITEM = Item(b"", b"", State.GONE)


def item_view(*columns: Column[Item]) -> View[Item]:
    """Items with the columns that suit a listing."""
    return View(columns, item_fields, lambda item: item.item_id, _NO_ITEM, lambda item: item.data)


def outcome_view(queue: bytes) -> View[Outcome]:
    """What became of each ID of a batch."""

    def fields(outcome: Outcome) -> dict[str, Any]:
        return {
            **bytes_fields("queue", queue),
            **bytes_fields("id", outcome.item_id),
            "status": outcome.status.value,
            "holder": None if outcome.holder is None else escaped(outcome.holder),
        }

    nothing = Outcome(b"", Status.MISSING)
    return View((), fields, lambda outcome: outcome.item_id, nothing)


def clean_view(queue: bytes, dry_run: bool) -> View[CleanAction]:
    """What a clean did to each ID, and why."""

    def fields(action: CleanAction) -> dict[str, Any]:
        return {
            **bytes_fields("queue", queue),
            **bytes_fields("id", action.item_id),
            "action": action.action.value,
            "state": action.state.value,
            "where": action.where,
            "dry_run": dry_run,
        }

    nothing = CleanAction(b"", Repair.DROPPED, State.GONE)
    return View((), fields, lambda action: action.item_id, nothing)


def counts_fields(counts: Counts) -> dict[str, Any]:
    """A queue's counts as JSON; null is unknown."""
    return {
        **bytes_fields("queue", counts.queue),
        "waiting": counts.waiting,
        "processing": counts.processing,
        "leased": counts.leased,
        "held": counts.held,
        "abandoned": counts.abandoned,
        "delayed": counts.delayed,
        "due": counts.due,
        "buried": counts.buried,
        "returned": counts.returned,
        "orphaned": counts.orphaned,
        "unlisted": counts.unlisted,
        "duplicated": counts.duplicated,
        "ghosts": counts.ghosts,
        "stray_leases": counts.stray_leases,
        "wrong_types": counts.wrong_types,
        "returns": counts.returns,
        "results": counts.results,
        "oldest_waiting_seconds": counts.oldest_waiting_s,
        "lease_soonest_ms": counts.lease_soonest_ms,
        "lease_latest_ms": counts.lease_latest_ms,
        "payload_sampled": counts.payload_sampled,
        "payload_min_bytes": counts.payload_min_bytes,
        "payload_median_bytes": counts.payload_median_bytes,
        "payload_max_bytes": counts.payload_max_bytes,
    }


def _count_column(title: str, name: str, *, bad: bool = False) -> Column[Counts]:
    def value(counts: Counts) -> int | None:
        number: int | None = getattr(counts, name)
        return number

    return Column(
        title,
        lambda counts: human.count(value(counts)),
        value,
        right=True,
        style=lambda counts: "red" if bad and value(counts) else None,
    )


_QUEUE: Column[Counts] = Column(
    "QUEUE", lambda counts: escaped(counts.queue), lambda counts: escaped(counts.queue)
)


def counts_view(columns: Sequence[Column[Counts]]) -> View[Counts]:
    """Counts with the columns that suit."""
    nothing = Counts(b"", 0, 0, 0, 0)
    return View(columns, counts_fields, lambda counts: counts.queue, nothing)


STATS_COLUMNS = (
    _QUEUE,
    _count_column("WAITING", "waiting"),
    _count_column("LEASED", "leased"),
    _count_column("ABANDONED", "abandoned", bad=True),
    _count_column("HELD", "held", bad=True),
    _count_column("DELAYED", "delayed"),
    _count_column("BURIED", "buried"),
)
DEEP_COLUMNS = (
    *STATS_COLUMNS,
    _count_column("ORPHANED", "orphaned", bad=True),
    _count_column("DUPLICATED", "duplicated", bad=True),
    _count_column("GHOSTS", "ghosts", bad=True),
)
QUEUES_COLUMNS = (
    _QUEUE,
    _count_column("WAITING", "waiting"),
    _count_column("PROCESSING", "processing"),
    _count_column("DELAYED", "delayed"),
    _count_column("BURIED", "buried"),
)
