"""What there is to complete, read from the parsers of the commands."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rwq_cli.cli.app import COMMANDS, Described, all_commands, build_root, load_command
from rwq_cli.cli.global_options import GLOBAL_NAMES
from rwq_cli.cli.settings import OutputFormat

# Accepted by every command, at each level, with one meaning.
_COMMON_NAMES = GLOBAL_NAMES | {"help"}
# Common options that have no say in which server is asked, or how it is reached.
_NOT_ABOUT_SERVER = frozenset(
    {"queue", "output", "no_color", "verbose", "debug", "help"},
)


class Kind(StrEnum):
    """What can be offered for a value."""

    NONE = "none"
    CHOICES = "choices"
    FILE = "file"
    DIRECTORY = "directory"
    QUEUE = "queue"
    OTHER = "other"


@dataclass(frozen=True)
class Value:
    """What an option takes, or what stands in the place of an argument.

    Attributes:
        kind: What can be offered; NONE is an option without a value.
        label: What the help calls it, such as `FORMAT`; empty where there is no value.
        choices: All that it can be, for CHOICES.
    """

    kind: Kind
    label: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Option:
    """An option.

    Attributes:
        names: How it is written: `-q`, `--queue`.
        help: What it does, in one line without a full stop.
        value: What it takes.
        repeatable: Whether it may be given more than once.
        about_server: Whether it says which server is asked, or how it is reached.
    """

    names: tuple[str, ...]
    help: str
    value: Value
    repeatable: bool = False
    about_server: bool = False


@dataclass(frozen=True)
class Argument:
    """A word that is neither an option nor the value of one.

    Attributes:
        help: What it is, in one line without a full stop.
        value: What can be offered.
        repeatable: Whether any number of them may follow.
    """

    help: str
    value: Value
    repeatable: bool = False


@dataclass(frozen=True)
class Command:
    """A command, or `rwq` itself.

    Attributes:
        path: The words that name it after `rwq`; none for `rwq` itself.
        help: What it does, in one line without a full stop.
        options: Its own options, without the common ones.
        arguments: Its arguments, in order.
        commands: The commands below it; one that has any takes no arguments.
    """

    path: tuple[str, ...]
    help: str
    options: tuple[Option, ...] = ()
    arguments: tuple[Argument, ...] = ()
    commands: "tuple[Command, ...]" = ()

    @property
    def name(self) -> str:
        """The last word of its path."""
        return self.path[-1]


@dataclass(frozen=True)
class Spec:
    """All that the scripts are made from.

    Attributes:
        root: `rwq` itself.
        common: The options that every command takes, before its name or after it.
    """

    root: Command
    common: tuple[Option, ...]

    def all_commands(self) -> Iterable[Command]:
        """`rwq` itself and every command below it, each before those below it."""
        yield from _with_inner(self.root)


def _with_inner(command: Command) -> Iterable[Command]:
    yield command
    for inner in command.commands:
        yield from _with_inner(inner)


def collect() -> Spec:
    """Describe the command line as it is now; this imports every command."""
    root = build_root()
    described = all_commands()
    return Spec(
        root=Command(
            path=(),
            help=_one_line(root.help),
            options=_options(root, common=False),
            commands=tuple(_command((name,), described) for name in COMMANDS),
        ),
        common=_options(root, common=True),
    )


def _command(path: tuple[str, ...], described: list[Described]) -> Command:
    """The command at a path, with all that is below it."""
    for leaf in described:
        if leaf.path == " ".join(path):
            return Command(
                path=path,
                help=_short(leaf.command),
                options=_options(leaf.command, common=False),
                arguments=tuple(
                    Argument(_one_line(parameter.help), _value(parameter), parameter.nargs != 1)
                    for parameter in _parameters(leaf.command)
                    if parameter.param_type_name == "argument"
                ),
            )
    group: Any = load_command(path[0])
    for word in path[1:]:
        group = group.commands[word]
    return Command(
        path=path,
        help=_short(group),
        options=_options(group, common=False),
        commands=tuple(_command((*path, name), described) for name in group.commands),
    )


def _parameters(command: Any) -> list[Any]:
    """Everything a command's help shows, its help option included."""
    context = command.context_class(command, **command.context_settings)
    return [
        parameter
        for parameter in command.get_params(context)
        if not getattr(parameter, "hidden", False)
    ]


def _options(command: Any, *, common: bool) -> tuple[Option, ...]:
    return tuple(
        Option(
            # The short name first; those of --help come in no order.
            names=tuple(
                sorted(
                    (*parameter.opts, *parameter.secondary_opts),
                    key=lambda name: name.startswith("--"),
                )
            ),
            help=_one_line(parameter.help),
            value=_value(parameter),
            repeatable=parameter.multiple,
            about_server=common and parameter.name not in _NOT_ABOUT_SERVER,
        )
        for parameter in _parameters(command)
        if parameter.param_type_name == "option" and (parameter.name in _COMMON_NAMES) is common
    )


def _value(parameter: Any) -> Value:
    if getattr(parameter, "is_flag", False):
        return Value(Kind.NONE)
    label = (parameter.metavar or _long_name(parameter)).strip("[].").upper()
    if parameter.name == "output":
        return Value(Kind.CHOICES, label, tuple(OutputFormat))
    choices = getattr(parameter.type, "choices", None)
    if choices is not None:
        return Value(Kind.CHOICES, label, tuple(map(str, choices)))
    if parameter.name == "queue" or label == "QUEUE":
        return Value(Kind.QUEUE, label)
    kinds = {"FILE": Kind.FILE, "DIR": Kind.DIRECTORY}
    return Value(kinds.get(label, Kind.OTHER), label)


def _long_name(parameter: Any) -> str:
    names: list[str] = parameter.opts or [parameter.name]
    return max(names, key=len).lstrip("-")


def _short(command: Any) -> str:
    return _one_line(command.get_short_help_str(limit=200))


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split()).removesuffix(".")
