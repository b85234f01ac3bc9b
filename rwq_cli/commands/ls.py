"""`rwq ls`: list items."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from rwq_cli.cli.choosing import filters, warn_of_idle_reset
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.notes import warn_if_missing, warn_sizes_skipped
from rwq_cli.cli.open_queues import QueueFinder
from rwq_cli.cli.options import (
    NULL_RECORDS,
    AllQueuesOption,
    DataOption,
    LimitOption,
    WatchOption,
    option,
)
from rwq_cli.cli.settings import Settings
from rwq_cli.cli.watching import watched
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.listing import listed_ids
from rwq_cli.core.inspect.selection import Selection, Source, source_of
from rwq_cli.core.model import Item, State
from rwq_cli.core.queue import WorkQueue
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.options import OutputFormat
from rwq_cli.views.items import ITEM_FIELDS, columns_for, plain_names, with_data
from rwq_cli.views.listing import footer, write_items

if TYPE_CHECKING:
    from rwq_cli.views.watching import Tick

app = CommandModule()


class Which(StrEnum):
    """The values of WHICH."""

    WAITING = "waiting"
    PROCESSING = "processing"
    LEASED = "leased"
    ABANDONED = "abandoned"
    DELAYED = "delayed"
    BURIED = "buried"
    ALL = "all"


_SOURCES = {
    Which.WAITING: Source(main=True),
    Which.PROCESSING: Source(processing=True),
    Which.LEASED: Source(processing=True),
    Which.ABANDONED: Source(processing=True),
    Which.DELAYED: Source(delayed=True),
    Which.BURIED: Source(buried=True),
    Which.ALL: Source(main=True, processing=True, delayed=True, buried=True),
}
_ONE_STATE = {Which.LEASED: State.LEASED, Which.ABANDONED: State.ABANDONED}


@app.command(
    record=ITEM_FIELDS,
    help="List items, the next to be leased first; in processing, the oldest entry first. An item "
    "with several entries is listed by each, in the state that the entry alone shows.",
    examples=(
        "rwq ls -q jobs",
        "rwq ls processing -q jobs -n 0 -o jsonl",
        "rwq ls -q jobs --where user=42 --older-than 1h -o ids",
        "rwq ls buried -q jobs --watch 5s",
        "rwq ls all -q jobs --deep",
    ),
    reads_only=True,
    null=NULL_RECORDS,
    plain={
        **{
            which or "otherwise": plain_names(columns_for(which, lambda: 0))
            for which in ("waiting", "delayed", "buried", None)
        },
        "of several queues": "the same, queue",
    },
)
@filters
def ls(
    settings: Settings,
    *,
    which: Annotated[
        Which | None,
        typer.Argument(
            metavar="[WHICH]",
            help="waiting, processing, leased, abandoned, delayed, buried or all. Default: "
            "what --state needs, else waiting.",
            show_default=False,
        ),
    ] = None,
    limit: LimitOption = 50,
    offset: Annotated[int, option("--offset N", "Skip the first N.", min=0)] = 0,
    tail: Annotated[bool, option("--tail", "Start at the other end: newest first.")] = False,
    deep: Annotated[
        bool,
        option("--deep", "With all: also items in no list; walks over all keys."),
    ] = False,
    data: DataOption = False,
    watch: WatchOption = None,
    all_queues: AllQueuesOption = False,
    selection: Selection,
) -> ExitStatus:
    is_selected = not selection.is_all
    which, source, selection = _resolve(which, selection)
    if deep:
        if which is not Which.ALL:
            raise InvalidArgument("--deep needs all", "rwq ls all --deep")
        source = source._replace(deep=True)
    finder = QueueFinder(settings, all_queues=all_queues)
    # An ID that is in processing twice is one item, so its entries have to be compared.
    needs_ids_only = selection.is_all and source.is_one and not source.processing

    # IDs are mostly piped to another command, which has notes of its own.
    is_for_another_command = (
        settings.output is OutputFormat.IDS and not settings.environment.stderr_is_terminal
    )

    def items(queue: WorkQueue) -> Iterator[Item]:
        found = queue.items(
            source,
            selection,
            limit=limit or None,
            offset=offset,
            tail=tail,
            data=data or settings.needs_data,
            bare=settings.needs_ids_only,
        )
        return warn_if_missing(settings, queue, found)

    def ids(queue: WorkQueue) -> Iterator[Sequence[bytes]]:
        found = listed_ids(queue, source, limit=limit or None, offset=offset, tail=tail)
        return warn_if_missing(settings, queue, found)

    noun = "items" if which in (None, Which.ALL) else f"{which} items"

    def show(tick: "Tick | None") -> None:
        opened, out = finder.find(), settings.out
        warn_of_idle_reset(settings, opened.queues, selection)
        columns = columns_for(which, lambda: opened.queues[0].now_ms())
        listed = opened.each(settings, items)
        shown = write_items(
            out,
            warn_sizes_skipped(settings, opened.queues, listed, data=data or settings.needs_data),
            with_data(columns) if data else columns,
            empty=f"No {'such ' if is_selected else ''}{noun} in {opened.label}.",
            has_queue=not opened.is_one,
            id_batches=opened.each(settings, ids) if needs_ids_only else None,
            tick=tick,
        )
        if shown:
            out.footer(
                lambda: footer(
                    shown,
                    opened.label,
                    source,
                    opened.each(settings, lambda queue: [queue.lengths()]),
                    is_filtered=not selection.is_all,
                )
            )
        if which is Which.ALL and not source.deep and not is_for_another_command:
            out.note("--deep also shows items in no list")

    return watched(settings, watch, finder.connection, show)


def _resolve(which: Which | None, selection: Selection) -> tuple[Which | None, Source, Selection]:
    """Which structures to list, and which items of them.

    Returns:
        What is listed, None for a mixture; the structures; and the selection, with the state that
        the argument stands for.
    """
    states = selection.states
    source = _SOURCES[which or Which.WAITING]
    if states and which in (None, Which.ALL):
        source = source_of(states)
    if which is None and source == _SOURCES[Which.WAITING]:
        which = Which.WAITING
    if which in _ONE_STATE:
        one_state = frozenset({_ONE_STATE[which]})
        selection = selection._replace(states=one_state & (states or one_state))
    return which, source, selection
