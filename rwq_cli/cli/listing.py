"""What `ls` and `leases` have in common: items of one or more queues, once or repeatedly."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from rwq_cli.cli.connect import (
    OpenQueues,
    note_idle_reset,
    warn_if_missing,
    warn_of_paths,
    warn_of_reading,
)
from rwq_cli.cli.settings import Settings
from rwq_cli.cli.watching import watched
from rwq_cli.core.inspect.selection import Selection, Source
from rwq_cli.core.model import Item
from rwq_cli.output import human
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.records import Output
from rwq_cli.views.items import ITEM_FIELDS, WIDE, columns_for, plain_order, with_returns

if TYPE_CHECKING:
    from rwq_cli.cli.options import Duration
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


def list_items(
    settings: Settings,
    read: Callable[..., Iterator[Item]],
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
) -> None:
    """List the items that `read` yields from each queue, of `noun`, such as `waiting items`."""
    # `joined` merges those of several queues, `read_ids` reads only IDs; see `columns_for`, too.
    opened, at_most = OpenQueues(settings, all_queues=all_queues), settings.read_limit(limit)
    wants_data, is_bare = data or settings.needs_data, settings.needs_ids_only
    reads_sizes = wants_data or settings.output is OutputFormat.IDS

    def footer(count_shown: int) -> str:
        count = f"{human.count(count_shown)} shown"
        if source.deep:
            return f"{count} of {opened.label}"
        names = [name for name in _LISTS if getattr(source, name)]
        lengths = opened.each(lambda queue: [queue.lengths()])
        total = human.count(sum(getattr(counts, _LISTS[n]) for counts in lengths for n in names))
        kind = f" {_LISTS[names[0]]}" if len(names) == 1 else ""
        out_of = "of" if selection.is_all else "that match, out of"
        return f"{count} {out_of} {total}{kind} in {opened.label}"

    def reading(queue: "WorkQueue") -> Iterator[Item]:
        items = read(queue, limit=at_most, data=wants_data, bare=is_bare)
        return warn_if_missing(settings, queue, items)

    def show(tick: "Tick | None") -> None:
        queues, out = opened.find().queues, settings.out
        warn_of_reading(settings, queues, selection)
        readers = [opened.reader(reading, queue) for queue in queues]
        items = islice(joined(readers), at_most) if joined else chain.from_iterable(readers)
        ids = None
        if read_ids is not None:
            ids = opened.each(lambda queue: warn_if_missing(settings, queue, read_ids(queue)))
        written = write_items(
            out,
            items,
            listing,
            now_ms=lambda: queues[0].now_ms(),
            data=data,
            empty=f"No {noun} in {opened.label}.",
            has_queue=not opened.is_one,
            id_batches=ids,
            tick=tick,
            limit=limit or None,
            offset=offset,
        )
        if not limit or written < limit:
            warn_of_paths(settings, selection, opened.label)
        if settings.by is not None and out.is_cut:
            which = "shown" if settings.is_ordered else "most frequent"
            out.note(f"{limit:,} {which}; -n 0 shows all")
        elif settings.by is None and written:
            out.footer(lambda: footer(written))
        if written and settings.shows_sizes and not reads_sizes:
            note_idle_reset(settings, queues[0], _SKIPPED)
        is_json = settings.output in (OutputFormat.JSON, OutputFormat.JSONL)
        is_watched = settings.environment.stderr_is_terminal
        if written and is_json and is_watched and not (wants_data or settings.fields):
            settings.environment.note("data is null; --data reads it", once=True)
        if last_note:
            out.note(last_note)

    watched(settings, watch, opened.connection, show)
