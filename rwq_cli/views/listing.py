"""Listings of items: the footer, and the sentence of an empty one."""

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
    what: str,
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
        what: What they are, such as `waiting items`.
        source: Where they come from.
        lengths: Reads the lengths of the queue.
        is_selected: Whether the user asked for some of them only.
        filters: Whether the source has entries that are not listed.
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
        empty=f"No {'such ' if is_selected else ''}{what} in {escaped(queue)}.",
        footer=footer,
        id_batches=id_batches,
    )
