"""The options that choose items, the same for every verb, and the IDs that they choose."""

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Optional

from rwq_cli.cli.command import Function, keyword, with_options
from rwq_cli.cli.options import (
    NULL_IDS_BOTH_WAYS,
    DryRunOption,
    YesOption,
    argument,
    offer_holders,
    offer_ids,
    offer_paths,
    option,
)
from rwq_cli.cli.settings import Settings
from rwq_cli.core.batches import Flush, ProgressListener
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.selection import Selection, comparison
from rwq_cli.core.model import Outcomes, State
from rwq_cli.input.streams import Pace, read_ids
from rwq_cli.input.values import parse_duration, parse_regex
from rwq_cli.output.escape import escaped

if TYPE_CHECKING:
    from rwq_cli.core.inspect.listing import Chosen
    from rwq_cli.core.model import Outcome, Status
    from rwq_cli.core.queue import WorkQueue
    from rwq_cli.exit_codes import ExitStatus
    from rwq_cli.input.where import Condition
    from rwq_cli.output.tally import OutcomeKind

# The states that `--state` can choose; an ID in the others is in no list, and has no data.
SELECTABLE = tuple(state for state in State if state not in (State.STRAY_LEASE, State.GONE))
# What `--mine` chooses. Not `held`: a lease of rwq always has an expiry.
_MINE = frozenset({State.LEASED})
# Without --state, each of these options selects the states that have what it looks at, if the verb
# would choose from none of them.
_IMPLIED = {
    "holder_glob": frozenset({State.LEASED, State.HELD}),
    "reason_glob": frozenset({State.BURIED}),
    "ttl": frozenset({State.LEASED, State.HELD}),
}
# The states that such an option can find. A session's lease may stand beside entries in any list;
# only those two states say that there is none.
_LEASABLE = frozenset(SELECTABLE) - {State.ABANDONED, State.ORPHANED}
_POSSIBLE = {**_IMPLIED, "holder_glob": _LEASABLE, "ttl": _LEASABLE}


def _parse_condition(text: str) -> "Condition":
    from rwq_cli.input.where import parse_condition

    return parse_condition(text)


# For each field of a selection: its option, type, help, parser, and the completions of a value.
_FILTERS: dict[str, tuple[Any, ...]] = {
    "states": ("--state STATE", list[State], "Only items in this state (repeatable): "),
    "match": (
        *("--match REGEX", Any, "Only items whose data matches."),
        lambda text: parse_regex(os.fsencode(text), "--match").search,
    ),
    "where": (
        *("--where EXPR", list[Any]),
        "Only items whose JSON data meets every condition (repeatable): tenant.id=3, size>100, "
        "kind~^img, !error.",
        _parse_condition,
        offer_paths,
    ),
    "id_glob": ("--id-glob GLOB", bytes, "Only IDs that match.", os.fsencode),
    "older_than_s": (
        *("--older-than DUR", float, "Only items at least this old."),
        lambda text: parse_duration(text, inf),
    ),
    "holder_glob": (
        *("--holder GLOB", bytes, "Only leases whose holder matches.", os.fsencode, offer_holders),
    ),
    "reason_glob": ("--reason GLOB", bytes, "Only items whose bury reason matches.", os.fsencode),
    "returns": ("--returns N", Any, "Only items returned this often, such as '>=2'.", comparison),
    "ttl": (
        *("--ttl DUR", Any, "Only leases with this time left, such as '>10m'."),
        lambda text: comparison(text, parse_duration),
    ),
}
_OPTIONS = {name: usage.split()[0] for name, (usage, *_) in _FILTERS.items()}


def _make_filters(offered: Iterable[State], *left_out: str) -> list[Parameter]:
    """Return the options that can choose among items in these states."""
    names = [state.value for state in SELECTABLE if state in offered]
    # A single state needs no option.
    without = {*left_out, "states" if len(names) == 1 else ""}
    without |= {name for name, states in _IMPLIED.items() if states.isdisjoint(offered)}

    def parse(text: str) -> State:
        if text in names:
            return State(text)
        reason = f"no such state: {text!r}"
        if text in tuple(State):
            reason = f"this command does not apply to {text} items"
        raise InvalidArgument(reason, f"--state is one of {', '.join(names)}")

    which = "see rwq help states" if len(names) == len(SELECTABLE) else ", ".join(names)
    options = []
    for name, (usage, kind, help, *more) in _FILTERS.items():
        if name == "states":
            help, more = f"{help}{which}.", [parse, lambda: names]
        declaration = option(usage, help, *more)
        options.append(keyword(name, Annotated[Optional[kind], declaration], default=None))  # noqa: UP045
    return [parameter for parameter in options if parameter.name not in without]


def _make_selection(
    settings: Settings,
    *,
    states: Sequence[State] | None = None,
    match: "Callable[[bytes], object] | None" = None,
    where: Sequence["Condition"] | None = None,
    **others: Any,
) -> Selection:
    for name, possible in _POSSIBLE.items():
        if states and others.get(name) is not None:
            check_possible(_OPTIONS[name], states, possible)
    if others.get("older_than_s") is not None:
        text = "rwq: items whose age the server cannot tell are not chosen"
        others["on_unknown_age"] = lambda _item: settings.environment.note(text, once=True)
    if where:
        from rwq_cli.input.where import Conditions

        match = Conditions(where, match)
    return Selection(frozenset(states) if states else None, match, **others)


def check_possible(what: str, states: Iterable[State], possible: frozenset[State]) -> None:
    """Raise `InvalidArgument` if no item in these states is among those that are possible."""
    if possible.isdisjoint(states):
        names = " or ".join(state.value for state in State if state in states)
        raise InvalidArgument(f"{what} finds no {names} items", "leave one of the two out")


def filters(
    offered: Iterable[State] = SELECTABLE, *, without: Sequence[str] = ()
) -> Callable[[Function], Function]:
    """Add the options that choose items to a command, which takes a `selection`."""
    return with_options("selection", _make_selection, _make_filters(offered, *without))


class Choice(NamedTuple):
    """The items that the command line chooses: the `listed_ids`, else the selection."""

    # `is_whole_queue` is true without IDs and without options other than `--all`, `from_stdin` if
    # IDs are read from stdin, `has_states` if `--state` was given, and `mine` if `--mine` was.
    settings: Settings
    listed_ids: Iterator[bytes | Flush] | None
    selection: Selection
    limit: int | None = None
    is_whole_queue: bool = False
    from_stdin: bool = False
    has_states: bool = False
    mine: bool = False
    yes: bool = False
    dry_run: bool = False

    @property
    def by_name(self) -> bool:
        return self.listed_ids is not None

    def including(self, states: frozenset[State]) -> "Choice":
        if self.has_states or self.selection.states is None:
            return self
        more = self.selection._replace(states=self.selection.states | states)
        return self._replace(selection=more)

    def act(
        self,
        verb: Callable[..., Outcomes],
        kind: "OutcomeKind[Outcome]",
        question: str | None = None,
        *,
        only_many: bool = False,
        takes_all: bool = False,
        reasons: "Mapping[Status, str] | None" = None,
        undo: Callable[..., Any] | None = None,
        rate: float | None = None,
        **options: Any,
    ) -> "ExitStatus":
        """Apply a verb of the core, with its options, to these items, and show the outcomes."""
        # See `choose` for the question, and `begin_report` for the reasons. What `undo` returns is
        # the verb's journal. A verb that `takes_all` items that exist needs no dry run before the
        # question.
        from rwq_cli.cli.connect import open_queue
        from rwq_cli.cli.reports import begin_report

        queue = open_queue(self.settings)
        shows, file = partial(begin_report, self.settings, queue), None
        if undo is not None:
            options["journal"] = file = undo(self.settings, queue)
            shows = file.report

        def act(items: "Chosen", *, dry_run: bool) -> Outcomes:
            return verb(queue, items.ids, expected=items.expected, dry_run=dry_run, **options)

        with shows(kind, dry_run=self.dry_run, reasons=reasons) as out:
            counted = None if takes_all else act
            items = self.choose(queue, question, only_many=only_many, act=counted)
            if rate is not None and not self.dry_run:
                items = items._replace(ids=Pace(rate).slow(items.ids))
            out.report_all(act(items, dry_run=self.dry_run))
        facts = {"undo_file": file and file.name} if "journal" in options else {}
        status: ExitStatus = out.finish(**facts)
        return status

    def choose(
        self,
        queue: "WorkQueue",
        question: str | None = None,
        *,
        only_many: bool = False,
        act: Callable[..., Outcomes] | None = None,
    ) -> "Chosen":
        """Return the items, after a question if one is asked; see `confirmed`."""
        # With `only_many`, named IDs are never asked about.
        from rwq_cli.cli.confirm import is_confirmed

        asks = question is not None and not (self.dry_run or (only_many and self.by_name))
        # Before anything is read, because it may be refused.
        asks = asks and not is_confirmed(self.settings, yes=self.yes)
        items = self.read(queue)
        if question is None or not asks:
            return items
        return self.confirmed(queue, items, question, only_many=only_many, act=act)

    def read(self, queue: "WorkQueue") -> "Chosen":
        """Return the named IDs as a stream, or select the items now."""
        from rwq_cli.cli.connect import warn_if_missing, warn_of_paths, warn_of_reading
        from rwq_cli.core.inspect.listing import Chosen, choose

        if self.listed_ids is not None:
            return Chosen(self.listed_ids)
        warn_of_reading(self.settings, [queue], self.selection)
        items = choose(queue, self.selection, limit=self.limit)
        if self.limit is None or len(list(items.ids)) < self.limit:
            warn_of_paths(self.settings, self.selection, escaped(queue.name))
        return items._replace(ids=warn_if_missing(self.settings, queue, items.ids))

    def confirmed(
        self,
        queue: "WorkQueue",
        items: "Chosen",
        question: str,
        *,
        only_many: bool = False,
        act: Callable[..., Outcomes] | None = None,
    ) -> "Chosen":
        """Return these items, all of them read, once the user agrees; see `confirm`.

        Args:
            only_many: Ask only if there are many, or if the context is protected.
            act: The question counts the items for which a dry run of it would succeed; None for all
                that exist.
        """
        from rwq_cli.cli.confirm import confirm, must_ask
        from rwq_cli.core.state.reads import read_facts

        ids = list(dict.fromkeys(entry for entry in items.ids if not isinstance(entry, Flush)))
        items = items._replace(ids=ids)
        if only_many and not must_ask(self.settings, len(ids)):
            return items
        if act is not None:
            # A dry run that only counts shows no progress.
            progress, queue.connection.progress = queue.progress, ProgressListener()
            ids = [
                outcome.item_id for outcome in act(items, dry_run=True) if outcome.status.infinitive
            ]
            queue.connection.progress = progress
        count = leased = 0
        for facts in read_facts(queue, ids):
            count += facts.has_data
            leased += facts.has_data and facts.session is not None
        queue.progress.hide()
        confirm(self.settings, question, count, escaped(queue.name), leased=leased)
        return items


@dataclass(frozen=True)
class _Chooser:
    """What the IDs and options of a verb choose.

    Attributes:
        default: The states to choose from without `--state`.
        everything: Those to choose from with `--all`.
        filters: The options that choose.
        acts: Whether the verb changes items; one that only reads needs neither IDs nor options.
    """

    default: frozenset[State]
    everything: frozenset[State]
    filters: Sequence[Parameter]
    acts: bool

    def choice(
        self,
        settings: Settings,
        ids: list[str] | None = None,
        *,
        mine_only: Annotated[
            bool, option("--mine", "Only items leased by this session; without IDs, all.")
        ] = False,
        limit: Annotated[
            int | None, option("-n, --limit N", "Only the first N; 0 for no limit.", min=0)
        ] = None,
        all_items: Annotated[bool, option("--all", "All that the command applies to.")] = False,
        null: Annotated[bool, option("-0, --null", NULL_IDS_BOTH_WAYS)] = False,  # noqa: ARG002
        yes: YesOption = False,
        dry_run: DryRunOption = False,
        **chosen_by: Any,
    ) -> Choice:
        """Return what is chosen; raise if that is nothing, or the options cannot be combined."""
        selection = _make_selection(settings, **chosen_by)
        used = [_OPTIONS[name] for name in _OPTIONS if chosen_by.get(name) not in (None, [])]
        used += ["-n"] * bool(limit) + ["--all"] * all_items
        choice = Choice(settings, None, selection, mine=mine_only, yes=yes, dry_run=dry_run)
        if ids:
            if used or limit is not None:
                raise InvalidArgument(
                    f"IDs and {(used or ['-n'])[0]} cannot be used together",
                    "give IDs, or choose items by options",
                )
            listed = read_ids(settings.environment, ids, null_separated=settings.null_separated)
            return choice._replace(listed_ids=listed, from_stdin="-" in ids)
        if not self.acts and used in ([], ["--all"]):
            return choice._replace(selection=Selection(self.everything), is_whole_queue=True)
        if not (used or mine_only):
            flags = ", ".join(_OPTIONS[parameter.name] for parameter in self.filters)
            raise InvalidArgument(
                "no items chosen",
                f"give IDs, or - to read them from stdin; or choose by {flags} or -n; or use --all",
            )
        has_states = selection.states is not None
        if not has_states:
            states = _MINE if mine_only else self._implied(selection, all_items=all_items)
            selection = selection._replace(states=states)
        if mine_only:
            selection = selection._replace(holder_glob=glob.escape(settings.holder))
        return choice._replace(
            selection=selection,
            limit=limit or None,
            is_whole_queue=used == ["--all"] and not mine_only,
            has_states=has_states,
        )

    def _implied(self, selection: Selection, *, all_items: bool) -> frozenset[State]:
        """Return the states to choose from without `--state`."""
        states = self.everything if all_items else self.default
        for name, implied in _IMPLIED.items():
            if getattr(selection, name) is not None and states.isdisjoint(implied):
                states = implied
        return states


def selects(
    default: frozenset[State],
    everything: frozenset[State] | None = None,
    offered: frozenset[State] | None = None,
    *,
    mine: bool = False,
    has_reason: bool = False,
    acts: bool = True,
    asks: bool = True,
) -> Callable[[Function], Function]:
    """Add the IDs and options that choose items to a command, which takes a `choice`.

    Args:
        default: The states to choose from without `--state`.
        everything: Those to choose from with `--all`, if they are others.
        offered: Those that `--state` accepts, if they are others.
        mine: Whether it has `--mine`.
        has_reason: Whether `--reason` is an option of the verb itself.
        acts: Whether it changes items, and has `--dry-run`.
        asks: Whether it has `--yes`, if it acts.
    """
    everything = everything or default
    filters = _make_filters(offered or everything, *["reason_glob"] * has_reason)
    chooser = _Chooser(default, everything, filters, acts)
    has = {"mine_only": mine, "yes": acts and asks, "dry_run": acts}
    help, offer = "IDs, or - for stdin; without IDs, the options choose.", offer_ids(default)
    ids = Annotated[list[str] | None, argument("[ID...]", help, offer=offer)]
    _, _ids, *options, _chosen_by = signature(chooser.choice).parameters.values()
    options = [parameter for parameter in options if has.get(parameter.name, True)]
    return with_options(
        "choice", chooser.choice, [keyword("ids", ids, default=None), *filters, *options]
    )
