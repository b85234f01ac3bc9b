"""Listings of items, with their footer, or a sentence if they are empty."""

from collections.abc import Callable, Iterable, Sequence

from rwq_cli.core.inspect.listing import Source
from rwq_cli.core.model import Counts, Item
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Column, Records
from rwq_cli.views.items import item_view


def listing_report(
    queue: bytes,
    items: Iterable[Item],
    columns: tuple[Column[Item], ...],
    *,
    noun: str,
    source: Source,
    lengths: Callable[[], Counts],
    is_selected: bool,
    filters: bool,
    id_batches: Iterable[Sequence[bytes]] | None = None,
) -> Records[Item]:
    """The report of a listing.

    Args:
        queue: The queue's name.
        items: The items.
        columns: Their columns.
        noun: The name of the records, such as `waiting items`.
        source: Where they come from.
        lengths: Reads the lengths of the queue's lists.
        is_selected: Whether the user selected some of them.
        filters: Whether entries of the source may be filtered out.
        id_batches: The IDs, if they can be read without the items; else None.
    """

    def footer(shown: int) -> str:
        if source.deep:
            return f"{human.count(shown)} shown of {escaped(queue)}"
        counts = lengths()
        walked = {
            "waiting": (source.main, counts.waiting),
            "processing": (source.processing, counts.processing),
            "delayed": (source.delayed, counts.delayed),
            "buried": (source.buried, counts.buried),
        }
        totals = {name: length for name, (is_walked, length) in walked.items() if is_walked}
        total = human.count(sum(totals.values()))
        kind = f" {next(iter(totals))}" if source.is_one else ""
        out_of = "that match, out of" if filters else "of"
        return f"{human.count(shown)} shown {out_of} {total}{kind} in {escaped(queue)}"

    return Records(
        view=item_view(columns),
        records=items,
        empty=f"No {'such ' if is_selected else ''}{noun} in {escaped(queue)}.",
        footer=footer,
        id_batches=id_batches,
    )
