"""`rwq ls`: what is in the lists."""

import os
import re
from enum import StrEnum
from typing import Annotated

import typer

from rwq_cli.command_line.manual import Manual
from rwq_cli.command_line.tree import new_app
from rwq_cli.commands.options import DataOption, LimitOption, NullRecordsOption
from rwq_cli.connecting import open_queue
from rwq_cli.core.batches import LONGEST_LIST
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.listing import Selection, Source
from rwq_cli.core.model import State
from rwq_cli.core.queue import FOREVER, WorkQueue
from rwq_cli.reading.durations import parse_duration
from rwq_cli.render import human
from rwq_cli.render.escape import escaped
from rwq_cli.render.report import Listing, Report
from rwq_cli.render.views import (
    BURIED_AT,
    DATA,
    DUE,
    HOLDER,
    ID,
    LAST_USE,
    POSITION,
    REASON,
    SIZE,
    STATE,
    TIME_LEFT,
    item_view,
)
from rwq_cli.settings import OutputFormat, Settings

app = new_app()

MANUALS = {
    "ls": Manual(
        examples=(
            "rwq ls -q jobs",
            "rwq ls processing -q jobs -n 0 -o jsonl",
            "rwq ls -q jobs --match '\"user\": *42' --older-than 1h -o ids",
        ),
        reads_only=True,
    )
}


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
_COLUMNS = {
    Which.WAITING: (POSITION, ID, LAST_USE, SIZE, DATA),
    Which.DELAYED: (ID, DUE, LAST_USE, SIZE, DATA),
    Which.BURIED: (ID, BURIED_AT, REASON, SIZE, DATA),
}
_ONE_STATE = {Which.LEASED: State.LEASED, Which.ABANDONED: State.ABANDONED}


class ListState(StrEnum):
    """The states that an ID in a list can be told to have."""

    WAITING = "waiting"
    LEASED = "leased"
    ABANDONED = "abandoned"
    HELD = "held"
    DELAYED = "delayed"
    DUE = "due"
    BURIED = "buried"
    GHOST = "ghost"
    WRONG_TYPE = "wrong-type"


@app.command(help="List items: next to be leased first, or longest leased first.")
def ls(
    ctx: typer.Context,
    which: Annotated[
        Which,
        typer.Argument(
            metavar="[WHICH]",
            help="waiting, processing, leased, abandoned, delayed, buried or all.",
        ),
    ] = Which.WAITING,
    limit: LimitOption = 50,
    offset: Annotated[
        int, typer.Option("--offset", metavar="N", min=0, help="Leave out the first N.")
    ] = 0,
    tail: Annotated[bool, typer.Option("--tail", help="From the other end: newest first.")] = False,
    data: DataOption = False,
    state: Annotated[
        list[ListState] | None, typer.Option("--state", help="Only items in this state.")
    ] = None,
    match: Annotated[
        str | None,
        typer.Option("--match", metavar="REGEX", help="Only items with this in their data."),
    ] = None,
    id_glob: Annotated[
        str | None, typer.Option("--id-glob", metavar="GLOB", help="Only IDs that match.")
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="DUR", help="Only items not used for so long."),
    ] = None,
    null: NullRecordsOption = False,
) -> Report:
    settings: Settings = ctx.obj
    states = frozenset(State(name.value) for name in state) if state else None
    if which in _ONE_STATE:
        states = frozenset({_ONE_STATE[which]}) & (states or {_ONE_STATE[which]})
    selection = Selection(
        states=states,
        match=_pattern(match),
        id_glob=None if id_glob is None else os.fsencode(id_glob),
        older_than_s=None if older_than is None else parse_duration(older_than, FOREVER),
    )
    queue = open_queue(settings)
    wants_data = data or settings.output is OutputFormat.DATA
    source = _SOURCES[which]
    columns = _COLUMNS.get(which, (ID, STATE, HOLDER, TIME_LEFT, LAST_USE, SIZE, DATA))
    narrowed = any(option is not None for option in (state, match, id_glob, older_than))
    name = escaped(queue.name)
    what = "items" if which is Which.ALL else f"{which.value} items"
    if match and not queue.connection.look_only():
        settings.environment.note(
            "note: this server counts reading an item's data as use; --match resets idle times"
        )
    return Listing(
        view=item_view(*columns),
        records=queue.items(
            source,
            selection,
            limit=min(limit, LONGEST_LIST) or None,
            offset=min(offset, LONGEST_LIST),
            tail=tail,
            data=wants_data,
            bare=settings.output is OutputFormat.IDS,
        ),
        empty=f"No such {what} in {name}." if narrowed else f"No {what} in {name}.",
        footer=lambda shown: _footer(queue, source, shown, selection),
        null_separated=null,
    )


def _pattern(text: str | None) -> "re.Pattern[bytes] | None":
    if text is None:
        return None
    try:
        return re.compile(os.fsencode(text))
    except re.error as error:
        raise InvalidArgument(
            f"--match is not a regular expression: {error}", "escape what is meant literally"
        )


def _footer(queue: WorkQueue, source: Source, shown: int, selection: Selection) -> str:
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
