"""The options that choose items, the same for every verb, and the IDs that they choose."""

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rwq_cli.cli.command import Function, provided
from rwq_cli.cli.options import NULL_IDS_BOTH_WAYS, offer_holders, offer_ids, option
from rwq_cli.cli.settings import Settings
from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.selection import Comparison, Selection
from rwq_cli.core.model import Outcomes, State
from rwq_cli.input.durations import parse_duration
from rwq_cli.input.regex import Regex
from rwq_cli.input.streams import read_ids

if TYPE_CHECKING:
    from rwq_cli.core.inspect.choosing import Chosen
    from rwq_cli.core.queue import WorkQueue
    from rwq_cli.input.conditions import Condition


# The states that `--state` can choose; an ID in the others is in no list, and has no data.
SELECTABLE = tuple(state for state in State if state not in (State.STRAY_LEASE, State.GONE))
# What `--mine` chooses. Not `held`: a lease of rwq always has an expiry.
_MINE = frozenset({State.LEASED})
# The options by the fields of a selection.
_OPTIONS = {
    "states": "--state",
    "match": "--match",
    "where": "--where",
    "id_glob": "--id-glob",
    "older_than_s": "--older-than",
    "holder_glob": "--holder",
    "reason_glob": "--reason",
    "returns": "--returns",
}
IN_PROCESSING = (State.LEASED, State.HELD, State.ABANDONED, State.GHOST, State.WRONG_TYPE)
# Without --state, these options choose from the states that have what they look at, where the verb
# would choose from none of these.
_IMPLIED = {
    "holder_glob": frozenset({State.LEASED, State.HELD}),
    "reason_glob": frozenset({State.BURIED}),
}
_HELD = frozenset({State.LEASED, State.HELD, State.UNLISTED, State.DUPLICATED})


def _regex(text: str) -> Regex[bytes]:
    return Regex(os.fsencode(text), "--match")


def _condition(text: str) -> "Condition":
    from rwq_cli.input.where import parse_condition

    return parse_condition(text)


def _state_option(offered: Iterable[State]) -> Any:
    names = [state.value for state in SELECTABLE if state in offered]

    def parse(text: str) -> State:
        if text in names:
            return State(text)
        known = text in tuple(State)
        raise InvalidArgument(
            f"this command does not apply to {text} items" if known else f"no such state: {text!r}",
            f"--state is one of {', '.join(names)}",
        )

    which = "see rwq help states" if len(names) == len(SELECTABLE) else ", ".join(names)
    help = f"Only items in this state (repeatable): {which}."
    return Annotated[list[State] | None, option("--state STATE", help, parse, offer=lambda: names)]


def _filters(offered: Iterable[State]) -> Callable[..., Selection]:
    """The options that filter items in these states."""

    def selection(
        _settings: Settings,
        states: _state_option(offered) = None,  # type: ignore[valid-type]
        match: Annotated[
            Regex[bytes] | None,
            option("--match REGEX", "Only items whose data matches.", _regex),
        ] = None,
        where: Annotated[
            list[Any] | None,
            option(
                "--where EXPR",
                "Only items whose JSON data meets every condition (repeatable): tenant.id=3, "
                "size>100, kind~^img, !error.",
                _condition,
            ),
        ] = None,
        id_glob: Annotated[
            bytes | None, option("--id-glob GLOB", "Only IDs that match.", os.fsencode)
        ] = None,
        older_than: Annotated[
            float | None,
            option(
                "--older-than DUR",
                "Only items last used longer ago than this.",
                lambda text: parse_duration(text, inf),
            ),
        ] = None,
        holder_glob: Annotated[
            bytes | None,
            option(
                "--holder GLOB", "Only leases of such holders.", os.fsencode, offer=offer_holders
            ),
        ] = None,
        reason_glob: Annotated[
            bytes | None,
            option("--reason GLOB", "Only items buried for such a reason.", os.fsencode),
        ] = None,
        returns: Annotated[
            Comparison | None,
            option("--returns N", "Only items returned so often, such as '>=2'.", Comparison.parse),
        ] = None,
    ) -> Selection:
        holds = None
        if where:
            from rwq_cli.input.conditions import all_of

            holds = all_of(where)
        return Selection(
            frozenset(states) if states else None,
            match,
            id_glob,
            older_than,
            holds,
            holder_glob,
            reason_glob,
            returns,
        )

    return selection


def filters(offered: Iterable[State] = SELECTABLE) -> Callable[[Function], Function]:
    """Give a command the options that filter items in these states; it takes a `selection`."""
    return provided("selection", _filters(offered), _without_use(offered))


def _without_use(offered: Iterable[State]) -> list[str]:
    """The options that cannot choose among items in these states."""
    states = frozenset(offered)
    # The only state needs no option.
    left_out = ["states"] * (len(states) == 1)
    left_out += ["holder_glob"] * states.isdisjoint(_HELD)
    return left_out + ["reason_glob"] * (State.BURIED not in states)


class Choice(NamedTuple):
    """The items that the command line chooses: the `named` IDs, else the selection.

    `is_whole_queue` is true without IDs and options except `--all`, `from_stdin` if the IDs are
    read there, `has_states` if `--state` was given, `mine` for what this session has leased.
    """

    named: Iterator[bytes | Flush] | None
    selection: Selection
    limit: int | None = None
    is_whole_queue: bool = False
    from_stdin: bool = False
    has_states: bool = False
    mine: bool = False

    @property
    def by_name(self) -> bool:
        """True if the user named each item."""
        return self.named is not None

    def including(self, states: frozenset[State]) -> "Choice":
        """Return a choice that also selects these states, unless `--state` or IDs were given."""
        if self.has_states or self.selection.states is None:
            return self
        more = self.selection._replace(states=self.selection.states | states)
        return self._replace(selection=more)

    def choose(
        self,
        queue: "WorkQueue",
        settings: Settings,
        *,
        confirm: str | None = None,
        yes: bool = False,
        only_many: bool = False,
        act: Callable[..., Outcomes] | None = None,
    ) -> "Chosen":
        """Return the named IDs as a stream, or select the items now.

        `confirm` is the action to confirm, such as `remove {}`; with `only_many`, only if options
        chose the items and they are many or the context is protected. The question counts those of
        which a dry run of `act` says that it would succeed, or all that exist if that is None.
        """
        from rwq_cli.cli.confirm import confirm_ids, is_confirmed
        from rwq_cli.cli.open_queues import warn_if_missing
        from rwq_cli.core.inspect.choosing import Chosen, choose

        if self.named is not None:
            chosen = Chosen(self.named)
        else:
            warn_of_idle_reset(settings, [queue], self.selection)
            selection = self.selection
            if self.mine:
                selection = selection._replace(holder_glob=glob.escape(queue.holder))
            chosen = choose(queue, selection, limit=self.limit)
            chosen = chosen._replace(ids=warn_if_missing(settings, queue, chosen.ids))
        if confirm is None or (only_many and self.by_name) or is_confirmed(settings, yes=yes):
            return chosen

        def counted(ids: Sequence[bytes]) -> Sequence[bytes]:
            if act is None:
                return ids
            outcomes = act(chosen._replace(ids=ids), dry_run=True)
            return [each.item_id for each in outcomes if each.status.infinitive]

        ids = confirm_ids(settings, confirm, chosen.ids, queue, counted, only_many=only_many)
        return chosen._replace(ids=ids)


class SelectionScope(NamedTuple):
    """Which states a verb takes: without `--state`, with `--all`, and those of `--state`.

    `defaults_to_all` is true if it acts on the whole queue without IDs and options, `has_reason` if
    `--reason` is an option of the verb itself. `mine` is the help of `--mine`; None without it.
    """

    default: frozenset[State]
    everything: frozenset[State]
    offered: frozenset[State]
    defaults_to_all: bool = False
    mine: str | None = None
    has_reason: bool = False


def selects(scope: SelectionScope) -> Callable[[Function], Function]:
    """Give a command the IDs and options that choose items; it takes a `choice`.

    It raises `InvalidArgument` if nothing was chosen, or the options cannot be used together.
    """
    left_out = [*_without_use(scope.offered), *["reason_glob"] * scope.has_reason]

    @provided("selection", _filters(scope.offered), left_out)
    def choice(
        settings: Settings,
        ids: Annotated[
            list[str] | None,
            typer.Argument(
                metavar="[ID...]",
                help="IDs, or - for stdin; without IDs, the options choose.",
                autocompletion=offer_ids(scope.default),
            ),
        ] = None,
        *,
        selection: Selection,
        mine: Annotated[bool, option("--mine", scope.mine or "")] = False,
        limit: Annotated[
            int | None, option("-n, --limit N", "The first N only; 0 for no limit.", min=0)
        ] = None,
        everything: Annotated[bool, option("--all", "All that the command applies to.")] = False,
        null: Annotated[bool, option("-0, --null", NULL_IDS_BOTH_WAYS)] = False,  # noqa: ARG001
    ) -> Choice:
        used = [_OPTIONS[name] for name, value in selection._asdict().items() if value is not None]
        used += ["-n"] * bool(limit) + ["--all"] * everything
        if ids and (used or limit is not None):
            raise InvalidArgument(
                f"IDs and {(used or ['-n'])[0]} cannot be used together",
                "give IDs, or choose items by options",
            )
        if ids:
            named = read_ids(settings.environment, ids, null_separated=settings.null_separated)
            return Choice(named, Selection(), from_stdin="-" in ids, mine=mine)
        if scope.defaults_to_all and used in ([], ["--all"]):
            return Choice(None, Selection(scope.everything), is_whole_queue=True)
        if not (used or mine):
            options = [each for name, each in _OPTIONS.items() if name not in left_out]
            raise InvalidArgument(
                "no items chosen",
                "give IDs, or - to read them from stdin; or choose by "
                f"{', '.join(options)} or -n; or use --all",
            )
        has_states = selection.states is not None
        if has_states and everything:
            raise InvalidArgument.both("--all", "--state")
        if not has_states:
            states = scope.everything if everything else scope.default
            for name, implied in _IMPLIED.items():
                if getattr(selection, name) is not None and states.isdisjoint(implied):
                    states = implied
            selection = selection._replace(states=_MINE if mine else states)
        return Choice(None, selection, limit or None, has_states=has_states, mine=mine)

    return provided("choice", choice, ["mine"] * (scope.mine is None))


def warn_of_idle_reset(
    settings: Settings, queues: "Sequence[WorkQueue]", selection: Selection
) -> None:
    """Print a note if `--match` or `--where` resets the idle times of items on this server."""
    if selection.needs_data and queues and not queues[0].connection.set_no_touch():
        name = "--where" if selection.match is None else "--match"
        settings.environment.note(
            f"note: {name} resets idle times: on this server, reading an item's data counts as use",
            once=True,
        )
