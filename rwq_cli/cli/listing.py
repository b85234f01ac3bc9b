"""What `ls` and `leases` have in common: items of one or more queues, once or again and again."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rwq_cli.cli.choosing import warn_of_idle_reset
from rwq_cli.cli.open_queues import QueueFinder, warn_if_missing, warn_sizes_skipped
from rwq_cli.cli.settings import Settings
from rwq_cli.cli.watching import watched
from rwq_cli.core.inspect.selection import Selection, Source
from rwq_cli.core.model import Item
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.views.items import columns_for
from rwq_cli.views.listing import footer, write_items

if TYPE_CHECKING:
    from rwq_cli.cli.options import Duration
    from rwq_cli.core.queue import WorkQueue
    from rwq_cli.views.watching import Tick


def list_items(
    settings: Settings,
    read: "Callable[[WorkQueue], Iterator[Item]]",
    *,
    listing: str | None,
    noun: str,
    source: Source,
    selection: Selection,
    data: bool,
    watch: "Duration | None",
    all_queues: bool,
    limit: int,
    offset: int = 0,
    joined: Callable[[Iterable[Iterable[Item]]], Iterator[Item]] | None = None,
    read_ids: "Callable[[WorkQueue], Iterator[Sequence[bytes]]] | None" = None,
    last_note: str = "",
) -> ExitStatus:
    """List items.

    Args:
        settings: The run's settings.
        read: Reads the items of a queue.
        listing: The columns: see `columns_for`.
        noun: What is listed, such as `waiting items`.
        source: The structures that are read, for the footer.
        selection: Which items are listed.
        data: True if `--data` was given.
        watch: The value of `--watch`.
        all_queues: True if `--all-queues` was given.
        limit: How many of them are shown if they are sorted or counted; 0 for all.
        offset: How many are skipped then.
        joined: Joins the items of several queues; None for one queue after the other.
        read_ids: Reads only the IDs, in batches; None if the items are needed.
        last_note: A note below the listing.
    """
    finder = QueueFinder(settings, all_queues=all_queues)

    def show(tick: "Tick | None") -> None:
        opened, out = finder.find(), settings.out
        queues = opened.queues
        warn_of_idle_reset(settings, queues, selection)
        readers = opened.readers(
            settings, lambda queue: warn_if_missing(settings, queue, read(queue))
        )
        items = joined(readers) if joined else (item for each in readers for item in each)
        ids = None
        if read_ids is not None:
            ids = opened.each(
                settings, lambda queue: warn_if_missing(settings, queue, read_ids(queue))
            )
        shown = write_items(
            out,
            warn_sizes_skipped(settings, queues, items, data=data or settings.needs_data),
            columns_for(listing, lambda: queues[0].now_ms(), data=data),
            empty=f"No {noun} in {opened.label}.",
            has_queue=not opened.is_one,
            id_batches=ids,
            tick=tick,
            limit=limit or None,
            offset=offset,
        )
        if settings.by is not None:
            if limit and shown == limit:
                out.note(f"the {limit:,} most frequent; -n 0 shows all")
        elif shown:
            lengths = opened.each(settings, lambda queue: [queue.lengths()])
            is_filtered = not selection.is_all
            out.footer(
                lambda: footer(shown, opened.label, source, lengths, is_filtered=is_filtered)
            )
        if last_note:
            out.note(last_note)

    return watched(settings, watch, finder.connection, show)
