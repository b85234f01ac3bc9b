"""Listings of items, with their footer, or a sentence if they are empty."""

from collections.abc import Callable, Iterable, Sequence

from rwq_cli.core.inspect.selection import Source
from rwq_cli.core.model import Counts, Item
from rwq_cli.output import human
from rwq_cli.output.report import Column, Records
from rwq_cli.views.items import QUEUE, item_view


def listing_report(
    label: str,
    items: Iterable[Item],
    columns: tuple[Column[Item], ...],
    *,
    noun: str,
    source: Source,
    lengths: Callable[[], Iterable[Counts]],
    is_selected: bool,
    filters: bool,
    notes_unlisted: bool = False,
    has_queue: bool = False,
    id_batches: Iterable[Sequence[bytes]] | None = None,
) -> Records[Item]:
    """The report of a listing.

    Args:
        label: The queue's name, or how many they are.
        items: The items.
        columns: Their columns.
        noun: The name of the records, such as `waiting items`.
        source: Where they come from.
        lengths: Reads the lengths of the lists of each queue.
        is_selected: Whether the user selected some of them.
        filters: Whether entries of the source may be filtered out.
        notes_unlisted: Whether to say that it does not look for items in no list.
        has_queue: Whether each row names its queue.
        id_batches: The IDs, if they can be read without the items; else None.
    """

    def footer(shown: int) -> str:
        if source.deep:
            return f"{human.count(shown)} shown of {label}"
        walked = {
            "waiting": source.main,
            "processing": source.processing,
            "delayed": source.delayed,
            "buried": source.buried,
        }
        names = [name for name, is_walked in walked.items() if is_walked]
        total = human.count(sum(getattr(each, name) for each in lengths() for name in names))
        kind = f" {names[0]}" if source.is_one else ""
        out_of = "that match, out of" if filters else "of"
        return f"{human.count(shown)} shown {out_of} {total}{kind} in {label}"

    return Records(
        view=item_view((QUEUE, *columns) if has_queue else columns),
        records=items,
        empty=lambda: f"No {'such ' if is_selected else ''}{noun} in {label}.",
        footer=footer,
        closing=lambda: "--deep also shows items in no list" if notes_unlisted else None,
        id_batches=id_batches,
    )
