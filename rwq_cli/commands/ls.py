"""`rwq ls`: list items."""

from enum import StrEnum
from functools import partial
from typing import Annotated, Any, NamedTuple

from rwq_cli.cli.choosing import check_possible, filters
from rwq_cli.cli.options import NULL_RECORDS, ListingOptions
from rwq_cli.commands import InvalidArgument, Settings, argument, command, option
from rwq_cli.core.inspect.selection import LISTED_IN, Selection, Source, source_of
from rwq_cli.core.model import State
from rwq_cli.output.options import OutputFormat
from rwq_cli.views.items import ITEM_FIELDS, PLAIN_OF_SEVERAL, plain_names

Which = StrEnum("Which", "WAITING PROCESSING LEASED HELD ABANDONED ORPHANED DELAYED DUE BURIED ALL")
_SOURCES = {
    Which.WAITING: Source(main=True),
    Which.ORPHANED: Source(deep=True),
    Which.DELAYED: Source(delayed=True),
    Which.DUE: Source(delayed=True),
    Which.BURIED: Source(buried=True),
    Which.ALL: Source(main=True, processing=True, delayed=True, buried=True),
}
# The WHICH that options imply without WHICH and --state: where the items with that property are.
_IMPLIED = {
    "reason_glob": Which.BURIED,
    "holder_glob": Which.PROCESSING,
    "ttl": Which.PROCESSING,
    "returns": Which.ALL,
}
_ONE_STATE = (Which.LEASED, Which.HELD, Which.ABANDONED, Which.ORPHANED, Which.DUE)


class Scope(NamedTuple):
    """Which items are listed: WHICH, where they are, what is chosen of them, and their name.

    WHICH is None for several kinds of items.
    """

    which: Which | None
    source: Source
    selection: Selection
    noun: str


def make_scope(which: Which | None, selection: Selection, *, deep: bool) -> Scope:
    """Return what the options ask for; raise if no item can meet all of them."""
    states, noun = selection.states, "items" if selection.is_all else "such items"
    if which is None and not states:
        implied = (where for key, where in _IMPLIED.items() if getattr(selection, key) is not None)
        which = next(implied, None)
    source = _SOURCES.get(which or Which.WAITING, Source(processing=True))
    if states and which in (None, Which.ALL):
        source = source_of(states)
    if which is None and source == _SOURCES[Which.WAITING]:
        which = Which.WAITING
    if which not in (None, Which.ALL):
        noun = noun.replace("items", f"{which} items")
        lists = (LISTED_IN[name] for name in LISTED_IN if getattr(source, name))
        possible = frozenset[State]().union(*lists)
        if which in _ONE_STATE:
            possible = frozenset({State(which.value)})
            selection = selection._replace(states=possible)
        if states:
            check_possible(f"ls {which}", states, possible)
    if deep and which is not Which.ALL:
        raise InvalidArgument("--deep needs all", "rwq ls all --deep")
    return Scope(which, source._replace(deep=source.deep or deep), selection, noun)


@command(
    record=ITEM_FIELDS,
    reads_only=True,
    null=NULL_RECORDS,
    plain={
        **{which: plain_names(which) for which in ("waiting", "delayed", "buried")},
        "otherwise": plain_names(None),
        **PLAIN_OF_SEVERAL,
    },
)
@filters()
def ls(
    settings: Settings,
    *,
    which: Annotated[
        Which | None, argument("[WHICH]", f"{', '.join(Which).replace(',', ' (default),', 1)}.")
    ] = None,
    listing: ListingOptions,
    offset: Annotated[int, option("--offset N", "Skip the first N.", min=0)] = 0,
    tail: Annotated[bool, option("--tail", "Start at the other end: newest first.")] = False,
    deep: Annotated[bool, option("--deep", "With all: also items in no list; slow.")] = False,
    selection: Selection,
) -> None:
    """List items, the next to be leased first; in processing, the oldest first.

    rwq ls -q jobs
    rwq ls processing -q jobs -n 0 -o jsonl
    rwq ls -q jobs --where user=42 --older-than 1h -o ids
    rwq ls buried -q jobs --by reason
    rwq ls buried -q jobs --watch 5s
    rwq ls all -q jobs --deep
    """
    # Completion does not need them.
    from rwq_cli.cli.listing import Listing
    from rwq_cli.core.inspect.listing import listed_ids

    which, source, selection, noun = make_scope(which, selection, deep=deep)
    needs_ids_only = selection.by_state_and_id and sum(source) == 1 and not source.deep
    page: dict[str, Any] = {"limit": listing.limit or None, "offset": offset, "tail": tail}
    read_ids = partial(listed_ids, source=source, selection=selection, **page)
    read_from = 0 if settings.reads_all else offset
    # IDs are mostly piped to another command, which has notes of its own.
    is_piped = settings.output is OutputFormat.IDS and not settings.environment.stderr_is_terminal
    looks_deeper = which is Which.ALL and not source.deep and not is_piped
    Listing(
        options=listing,
        selection=selection,
        source=source,
        read=lambda queue, **reading: queue.items(
            source, selection, offset=read_from, tail=tail, **reading
        ),
        name=which,
        noun=noun,
        offset=offset,
        read_ids=read_ids if needs_ids_only else None,
        last_note="--deep also shows items in no list" if looks_deeper else "",
    ).write()
