"""`rwq ls`: what is in the lists."""

from dataclasses import replace
from enum import StrEnum
from functools import cache
from typing import Annotated, TypedDict

import typer

from rwq_cli.cli.choosing import Criteria, warn_of_use
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.options import DataOption, LimitOption, NullRecordsOption
from rwq_cli.cli.settings import OutputFormat, Settings
from rwq_cli.core.batches import LONGEST_LIST
from rwq_cli.core.inspect.listing import Selection, Source
from rwq_cli.core.inspect.selection import source_of
from rwq_cli.core.model import Item, State
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Column, Listing, Report
from rwq_cli.views.records import (
    BURIED_AT,
    DATA,
    HOLDER,
    ID,
    LAST_USE,
    POSITION,
    REASON,
    SIZE,
    STATE,
    due_column,
    item_view,
    time_left_column,
)

app = CommandModule()


class Which(StrEnum):
    """What `rwq ls` can list."""

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
_COLUMNS: dict[Which | None, tuple[Column[Item], ...]] = {
    Which.WAITING: (POSITION, ID, LAST_USE, SIZE, DATA),
    Which.BURIED: (ID, BURIED_AT, REASON, SIZE, DATA),
}
_ONE_STATE = {Which.LEASED: State.LEASED, Which.ABANDONED: State.ABANDONED}


@app.command(
    help="List items: next to be leased first, or longest leased first.",
    examples=(
        "rwq ls -q jobs",
        "rwq ls processing -q jobs -n 0 -o jsonl",
        "rwq ls -q jobs --match '\"user\": *42' --older-than 1h -o ids",
    ),
    reads_only=True,
)
def ls(
    settings: Settings,
    *,
    which: Annotated[
        Which | None,
        typer.Argument(
            metavar="[WHICH]",
            help="waiting, processing, leased, abandoned, delayed, buried or all. Without: where "
            "--state says, or else waiting.",
            show_default=False,
        ),
    ] = None,
    limit: LimitOption = 50,
    offset: Annotated[
        int, typer.Option("--offset", metavar="N", min=0, help="Leave out the first N.")
    ] = 0,
    tail: Annotated[bool, typer.Option("--tail", help="From the other end: newest first.")] = False,
    data: DataOption = False,
    selection: Annotated[Selection, Criteria()],
    null: NullRecordsOption = False,
) -> Report:
    narrowed, states = not selection.is_all, selection.states
    source = _SOURCES[which or Which.WAITING]
    if states and which in (None, Which.ALL):
        source = source_of(states)
    if which is None and source == _SOURCES[Which.WAITING]:
        which = Which.WAITING
    if which in _ONE_STATE:
        states = frozenset({_ONE_STATE[which]}) & (states or {_ONE_STATE[which]})
    selection = replace(selection, states=states)
    queue = open_queue(settings)
    wants_data = data or settings.output is OutputFormat.DATA
    name = escaped(queue.name)
    what = "items" if which in (None, Which.ALL) else f"{which.value} items"
    warn_of_use(settings, queue, selection)
    page: _Page = {
        "limit": min(limit, LONGEST_LIST) or None,
        "offset": min(offset, LONGEST_LIST),
        "tail": tail,
    }
    # An ID that is in processing twice is one item, so these have to be looked at.
    ids_will_do = selection.is_all and source.is_one and not source.processing
    return Listing(
        view=item_view(*_columns(which, queue)),
        records=queue.items(
            source,
            selection,
            data=wants_data,
            bare=settings.output is OutputFormat.IDS,
            **page,
        ),
        id_batches=queue.listed_ids(source, **page) if ids_will_do else None,
        empty=f"No such {what} in {name}." if narrowed else f"No {what} in {name}.",
        footer=lambda shown: _footer(queue, source, shown, selection),
        null_separated=null,
    )


class _Page(TypedDict):
    """Which part of a listing."""

    limit: int | None
    offset: int
    tail: bool


def _columns(which: Which | None, queue: WorkQueue) -> tuple[Column[Item], ...]:
    # One instant is good for all rows, and it is asked for only where they are shown to people.
    now_ms = cache(queue.now_ms)
    if which is Which.DELAYED:
        return (ID, due_column(now_ms), LAST_USE, SIZE, DATA)
    every = (ID, STATE, HOLDER, time_left_column(now_ms), LAST_USE, SIZE, DATA)
    return _COLUMNS.get(which, every)


def _footer(queue: WorkQueue, source: Source, shown: int, selection: Selection) -> str:
    if source.deep:
        return f"{human.count(shown)} shown of {escaped(queue.name)}"
    counts = queue.lengths()
    totals = {
        "waiting": counts.waiting * source.main,
        "processing": counts.processing * source.processing,
        "delayed": counts.delayed * source.delayed,
        "buried": counts.buried * source.buried,
    }
    total = human.count(sum(totals.values()))
    listed = next(name for name in totals if getattr(source, "main" if name == "waiting" else name))
    of_them = "of" if selection.is_all else "that match, out of"
    kind = f" {listed}" if source.is_one else ""
    return f"{human.count(shown)} shown {of_them} {total}{kind} in {escaped(queue.name)}"
