"""The options by which every verb on many items chooses them, and what they come to."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer

from rwq_cli.cli.command_options import NullOption
from rwq_cli.cli.confirm import confirm
from rwq_cli.cli.settings import Settings
from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.inspect.listing import Selection
from rwq_cli.core.model import State
from rwq_cli.core.queue import FOREVER, WorkQueue
from rwq_cli.input.durations import parse_duration
from rwq_cli.input.ids import read_ids
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Report


class SelectableState(StrEnum):
    """The states that can be chosen by."""

    WAITING = "waiting"
    LEASED = "leased"
    ABANDONED = "abandoned"
    HELD = "held"
    ORPHANED = "orphaned"
    UNLISTED = "unlisted"
    DELAYED = "delayed"
    DUE = "due"
    BURIED = "buried"
    DUPLICATED = "duplicated"
    GHOST = "ghost"
    WRONG_TYPE = "wrong-type"


States = list[SelectableState] | None


def _state_help(offered: Iterable[SelectableState]) -> str:
    return f"Only items in this state; can be given several times. {', '.join(offered)}."


StateOption = Annotated[
    States, typer.Option("--state", metavar="STATE", help=_state_help(SelectableState))
]
MatchOption = Annotated[
    str | None,
    typer.Option("--match", metavar="REGEX", help="Only items with this in their data."),
]
IdGlobOption = Annotated[
    str | None, typer.Option("--id-glob", metavar="GLOB", help="Only IDs that match.")
]
OlderThanOption = Annotated[
    str | None,
    typer.Option("--older-than", metavar="DUR", help="Only items not used for so long."),
]
FirstOption = Annotated[
    int | None,
    typer.Option("-n", "--limit", metavar="N", min=0, help="The first N only; 0 for no limit."),
]
AllOption = Annotated[
    bool, typer.Option("--all", help="All items that the verb is for, or of them all that match.")
]
SomeIdsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ID...]",
        help="IDs, or - to read them from stdin, one a line; or else choose by the options.",
    ),
]


@dataclass(frozen=True)
class SelectionScope:
    """What a verb chooses from.

    Attributes:
        default: The states of the items that it is for, where `--state` names none.
        everything: The states that `--all` means.
        offered: The states that `--state` may name.
        may_be_left_out: Whether nothing need be chosen: that means everything then.
    """

    default: frozenset[State]
    everything: frozenset[State]
    offered: frozenset[State]
    may_be_left_out: bool = False

    @property
    def offers(self) -> list[SelectableState]:
        """What `--state` may name, in the order of the help."""
        return [name for name in SelectableState if name.value in self.offered]


@dataclass(frozen=True)
class Choice:
    """The items of one command line: named, or to be selected.

    Attributes:
        named: The IDs that were named; None where a selection was given.
        selection: Which items otherwise.
        limit: How many of them at most; None for all.
        null_separated: Whether `-o ids` ends each with NUL, as IDs on stdin do.
        is_left_out: Nothing was chosen, or all, where that means everything.
        from_stdin: The IDs that were named are read from stdin.
    """

    named: Iterator[bytes | Flush] | None
    selection: Selection
    limit: int | None
    null_separated: bool
    is_left_out: bool = False
    from_stdin: bool = False

    @property
    def by_name(self) -> bool:
        """Whether each item was named by whoever gave the command."""
        return self.named is not None

    def ids(self, queue: WorkQueue, settings: Settings) -> Iterable[bytes | Flush]:
        """The IDs: a stream of those that were named, or a list of those that were chosen now.

        Raises:
            ServerError: The server refused, or was lost, while they were chosen.
        """
        if self.named is not None:
            return self.named
        warn_of_use(settings, queue, self.selection)
        chosen = queue.choose(self.selection, limit=self.limit)
        if settings.progress is not None:
            # A question may come now.
            settings.progress.hide()
        return chosen


def choosing(scope: SelectionScope) -> Callable[[Callable[..., Report]], Callable[..., Report]]:
    """Give a command the arguments and options that choose items.

    The command takes a parameter `choice` for all of them, in whose place they stand in the help.

    Args:
        scope: What the verb chooses from.
    """

    def decorate(command: Callable[..., Report]) -> Callable[..., Report]:
        parameters: list[Parameter] = []
        for parameter in signature(command).parameters.values():
            if parameter.name == "choice":
                option = typer.Option("--state", metavar="STATE", help=_state_help(scope.offers))
                state = _CHOOSING["state"].replace(annotation=Annotated[States, option])
                parameters += {**_CHOOSING, "state": state}.values()
            else:
                parameters.append(parameter)

        @wraps(command)
        def choose_first(ctx: typer.Context, **given: Any) -> Report:
            chosen = {name: given.pop(name) for name in _CHOOSING}
            return command(ctx, choice=read_choice(ctx.obj, scope, **chosen), **given)

        # Typer reads both of these, and neither through the wrapping.
        by_name = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in parameters]
        choose_first.__signature__ = Signature(by_name)  # type: ignore[attr-defined]
        choose_first.__annotations__ = {each.name: each.annotation for each in parameters}
        return choose_first

    return decorate


def _options(
    ids: SomeIdsArgument = None,
    state: StateOption = None,
    match: MatchOption = None,
    id_glob: IdGlobOption = None,
    older_than: OlderThanOption = None,
    limit: FirstOption = None,
    everything: AllOption = False,
    null: NullOption = False,
) -> None:
    """What `choosing` puts in the place of `choice`."""


_CHOOSING = signature(_options).parameters


def read_choice(
    settings: Settings,
    scope: SelectionScope,
    *,
    ids: Sequence[str] | None,
    state: States,
    match: str | None,
    id_glob: str | None,
    older_than: str | None,
    limit: int | None,
    everything: bool,
    null: bool,
) -> Choice:
    """What the IDs and options of a verb that changes items come to.

    Args:
        settings: The run's settings.
        scope: What the verb chooses from.
        ids: The arguments.
        state: Each `--state`.
        match: `--match`.
        id_glob: `--id-glob`.
        older_than: `--older-than`.
        limit: `-n`; None or 0 for no limit.
        everything: `--all`.
        null: Whether IDs on stdin, and those of `-o ids`, end with NUL.

    Raises:
        InvalidArgument: Nothing was chosen, or what was given contradicts itself.
    """
    given = {
        "--state": bool(state),
        "--match": match is not None,
        "--id-glob": id_glob is not None,
        "--older-than": older_than is not None,
        "-n": bool(limit),
        "--all": everything,
    }
    options = [name for name, is_given in given.items() if is_given]
    if ids and (options or limit is not None):
        raise InvalidArgument(
            f"IDs and {(options or ['-n'])[0]} exclude each other",
            "name the items, or choose them by options",
        )
    if ids:
        named = read_ids(settings.environment, ids, null_separated=null)
        return Choice(named, Selection(), None, null, from_stdin="-" in ids)
    if scope.may_be_left_out and options in ([], ["--all"]):
        return Choice(None, Selection(scope.everything), None, null, is_left_out=True)
    if not options:
        raise InvalidArgument(
            "no items chosen",
            "name IDs, give - to read them from stdin, choose by --state, --match, --id-glob, "
            "--older-than or -n, or say --all",
        )
    if state and everything:
        raise InvalidArgument("--all and --state exclude each other", "give one of them")
    for name in state or ():
        if name.value not in scope.offered:
            raise InvalidArgument(
                f"this cannot be done to {name.value} items",
                f"--state is one of {', '.join(scope.offers)}",
            )
    states = scope.everything if everything else states_of(state) or scope.default
    selection = read_selection(states, match=match, id_glob=id_glob, older_than=older_than)
    return Choice(None, selection, limit or None, null)


def states_of(state: States) -> frozenset[State] | None:
    """The states that were named; None where none was."""
    return frozenset(State(name.value) for name in state) if state else None


def read_selection(
    states: frozenset[State] | None,
    *,
    match: str | None,
    id_glob: str | None,
    older_than: str | None,
) -> Selection:
    """A selection of the options' texts.

    Raises:
        InvalidArgument: `--match` is no regular expression, or `--older-than` no duration.
    """
    return Selection(
        states=states,
        match=_pattern(match),
        id_glob=None if id_glob is None else os.fsencode(id_glob),
        older_than_s=None if older_than is None else parse_duration(older_than, FOREVER),
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


def warn_of_use(settings: Settings, queue: WorkQueue, selection: Selection) -> None:
    """Say so where choosing by data makes items look fresh."""
    if selection.match and not queue.connection.look_only():
        settings.environment.note(
            "note: this server counts reading an item's data as use; --match resets idle times"
        )


def asked(
    what: str, ids: Iterable[bytes | Flush], queue: WorkQueue, *, yes: bool
) -> Iterator[bytes]:
    """The IDs, each once, if whoever gave the command agrees; see `rwq_cli.cli.confirm.confirm`.

    Args:
        what: The verb and its effect, such as `remove`.
        ids: The IDs; all are read before the question, which says how many they are.
        queue: The queue.
        yes: The user has agreed on the command line.

    Raises:
        Declined: The answer was no.
        InvalidArgument: There is no terminal to ask on.
    """
    known = list(dict.fromkeys(item_id for item_id in ids if not isinstance(item_id, Flush)))
    queue.connection.progress.hide()
    confirm(what, len(known), escaped(queue.name), yes=yes)
    return iter(known)
