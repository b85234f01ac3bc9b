"""What `ls` and `leases` have in common: items of one or more queues, once or repeatedly."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from rwq_cli.cli.connect import (
    OpenQueues,
    note_idle_reset,
    warn_if_missing,
    warn_of_paths,
    warn_of_reading,
)
from rwq_cli.cli.options import ListingOptions
from rwq_cli.cli.watching import show_repeatedly
from rwq_cli.core.inspect.selection import Selection, Source
from rwq_cli.core.model import Item
from rwq_cli.output import human
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.records import Output
from rwq_cli.views.items import ITEM_FIELDS, WIDE, columns_for, plain_order, with_returns

if TYPE_CHECKING:
    from rwq_cli.core.queue import WorkQueue
    from rwq_cli.views.counts import Tick

_SKIPPED = "sizes and data are not read; --data reads them, which resets idle times"
# The structures that a listing reads, with what their entries are counted as.
_LISTS = {name: name for name in ("processing", "delayed", "buried")} | {"main": "waiting"}


def write_items(
    out: Output,
    items: Iterable[Item],
    listing: str | None,
    *,
    now_ms: Callable[[], int] = lambda: 0,
    data: bool = False,
    has_queue: bool = False,
    tick: "Tick | None" = None,
    **options: Any,
) -> int:
    """Write a listing of items; see `columns_for` for the first arguments."""
    columns = columns_for(listing, now_ms, data=data)
    if has_queue:
        columns = [ITEM_FIELDS["queue"], *columns]
    at = [] if tick is None else [tick.time]
    return out.table(
        items,
        ITEM_FIELDS.plus(*at),
        with_returns(columns),
        plain_columns=(*plain_order(columns, listing), *at),
        wide=(*WIDE, *at),
        csv_also=at,
        **options,
    )


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Items of one or more queues, listed once or repeatedly.

    Attributes:
        read: Returns the items of a queue.
        name: The name of the listing; see `columns_for`.
        noun: What is listed, such as `waiting items`.
        offset: How many items `read` skips.
        joined: Merges the items of several queues; None for one queue after the other.
        read_ids: Returns only the IDs of a queue; None if items have to be read for that.
        last_note: A note below the listing.
    """

    options: ListingOptions
    selection: Selection
    source: Source
    read: Callable[..., Iterator[Item]]
    name: str | None
    noun: str
    offset: int = 0
    joined: Callable[[Iterable[Iterable[Item]]], Iterator[Item]] | None = None
    read_ids: "Callable[[WorkQueue], Iterator[Sequence[bytes]]] | None" = None
    last_note: str = ""

    def write(self) -> None:
        """List the items, as often as the options say."""
        settings, _, _, watch, all_queues = self.options
        opened = OpenQueues(settings, all_queues=all_queues)
        show_repeatedly(settings, watch, opened.connection, partial(self._show, opened))

    def _show(self, opened: OpenQueues, tick: "Tick | None") -> None:
        settings, limit, data, _, _ = self.options
        queues = opened.find().queues
        warn_of_reading(settings, queues, self.selection)
        readers = [opened.read_one(self._items, queue) for queue in queues]
        items: Iterable[Item] = chain.from_iterable(readers)
        if self.joined is not None:
            items = islice(self.joined(readers), settings.read_limit(limit))
        ids, read_ids = None, self.read_ids
        if read_ids is not None:
            ids = opened.read(lambda queue: warn_if_missing(settings, queue, read_ids(queue)))
        written = write_items(
            settings.out,
            items,
            self.name,
            now_ms=lambda: queues[0].now_ms(),
            data=data,
            empty=f"No {self.noun} in {opened.label}.",
            has_queue=not opened.is_one,
            id_batches=ids,
            tick=tick,
            limit=limit or None,
            offset=self.offset,
        )
        if not limit or written < limit:
            warn_of_paths(settings, self.selection, opened.label)
        self._note(opened, written)

    def _items(self, queue: "WorkQueue") -> Iterator[Item]:
        settings = self.options.settings
        items = self.read(
            queue,
            limit=settings.read_limit(self.options.limit),
            data=self._reads_data,
            bare=settings.needs_ids_only,
        )
        return warn_if_missing(settings, queue, items)

    @property
    def _reads_data(self) -> bool:
        return self.options.data or self.options.settings.needs_data

    def _note(self, opened: OpenQueues, written: int) -> None:
        """Write the notes below the listing."""
        settings, output = self.options.settings, self.options.settings.output
        if settings.by is not None and settings.out.is_cut:
            which = "shown" if settings.is_ordered else "most frequent"
            settings.out.note(f"{self.options.limit:,} {which}; -n 0 shows all")
        elif settings.by is None and written:
            settings.out.footer(lambda: self._footer(opened, written))
        reads_sizes = self._reads_data or output is OutputFormat.IDS
        if written and settings.shows_sizes and not reads_sizes:
            note_idle_reset(settings, opened.queues[0], _SKIPPED)
        is_watched = output.is_json and settings.environment.stderr_is_terminal
        if written and is_watched and not (self._reads_data or settings.fields):
            settings.environment.note("data is null; --data reads it", once=True)
        if self.last_note:
            settings.out.note(self.last_note)

    def _footer(self, opened: OpenQueues, written: int) -> str:
        count, source = f"{human.count(written)} shown", self.source
        if source.deep:
            return f"{count} of {opened.label}"
        names = [name for name in _LISTS if getattr(source, name)]
        lengths = opened.read(lambda queue: [queue.lengths()])
        total = human.count(sum(getattr(counts, _LISTS[n]) for counts in lengths for n in names))
        kind = f" {_LISTS[names[0]]}" if len(names) == 1 else ""
        out_of = "of" if self.selection.is_all else "that match, out of"
        return f"{count} {out_of} {total}{kind} in {opened.label}"
