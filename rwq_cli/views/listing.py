"""Listings of items, with their footer, or a sentence if they are empty."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from rwq_cli.core.inspect.selection import Source
from rwq_cli.core.model import Counts, Item
from rwq_cli.output import human
from rwq_cli.output.records import Output
from rwq_cli.views.items import ITEM_FIELDS, Columns, plain_order, wide, with_returns

if TYPE_CHECKING:
    from rwq_cli.views.watching import Tick


def write_items(
    out: Output,
    items: Iterable[Item],
    columns: Columns,
    *,
    empty: str | Callable[[], str],
    has_queue: bool = False,
    id_batches: Iterable[Sequence[bytes]] | None = None,
    unframed: bool = False,
    tick: "Tick | None" = None,
    limit: int | None = None,
    offset: int = 0,
) -> int:
    """Write items; see `Output.table`."""
    if has_queue:
        columns = [ITEM_FIELDS["queue"], *columns]
    at = [] if tick is None else [tick.time]
    return out.table(
        items,
        ITEM_FIELDS.plus(*at),
        with_returns(columns),
        plain_columns=(*plain_order(columns), *at),
        wide=(*wide(columns), *at),
        empty=empty,
        id_batches=id_batches,
        unframed=unframed,
        csv_also=at,
        limit=limit,
        offset=offset,
    )


def footer(
    shown: int, label: str, source: Source, lengths: Iterable[Counts], *, is_filtered: bool
) -> str:
    """The line below a listing: how many there are."""
    if source.deep:
        return f"{human.count(shown)} shown of {label}"
    keys = {"waiting": source.main, "processing": source.processing}
    keys |= {"delayed": source.delayed, "buried": source.buried}
    names = [name for name, is_read in keys.items() if is_read]
    total = human.count(sum(getattr(each, name) for each in lengths for name in names))
    kind = f" {names[0]}" if source.is_one else ""
    out_of = "that match, out of" if is_filtered else "of"
    return f"{human.count(shown)} shown {out_of} {total}{kind} in {label}"
