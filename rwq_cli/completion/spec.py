"""The commands, options and arguments to complete, read from the parsers of the commands."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from rwq_cli.cli.app import build_root
from rwq_cli.cli.choosing import SELECTABLE
from rwq_cli.cli.global_options import GLOBAL_NAMES
from rwq_cli.cli.record_fields import NO_FIELDS, Fields, fields_of
from rwq_cli.core.repair.findings import Code
from rwq_cli.environment import ColourMode
from rwq_cli.help.topics import SUMMARIES, Topic
from rwq_cli.output.options import OutputFormat

# Options that every command accepts, before its name or after it.
_COMMON = GLOBAL_NAMES | {"help"}
# The common options that do not select the server or how to connect to it.
_NOT_ABOUT_SERVER = {
    *("queue", "write", "output", "fields", "sort", "reverse", "color", "no_color", "quiet"),
    *("verbose", "debug", "help"),
}

# The values of options whose parser takes any text.
_CHOICES: dict[str, Iterable[StrEnum]] = {
    "output": OutputFormat,
    "color": ColourMode,
    "only": Code,
    "skip": Code,
    "state": SELECTABLE,
}


class Kind(StrEnum):
    """What can be offered for a value; NONE is an option without a value."""

    NONE = "NONE"
    CHOICES = "CHOICES"
    FILE = "FILE"
    DIRECTORY = "DIRECTORY"
    QUEUE = "QUEUE"
    ITEM = "ITEM"
    HOLDER = "HOLDER"
    CONTEXT = "CONTEXT"
    UNDO_FILE = "UNDO_FILE"
    # Any number of choices, separated by commas.
    LIST = "LIST"
    # One field of the command's records, or any number of them, separated by commas.
    FIELD = "FIELD"
    FIELDS = "FIELDS"
    OTHER = "OTHER"


# The items that a command usually takes, as `rwq ls` names them; others take all.
_ITEMS = {
    **dict.fromkeys(("lease", "bury", "mv"), "waiting"),
    **dict.fromkeys(("complete", "release"), "processing"),
    "touch": "leased",
    "kick": "buried",
}
# By a command and the label of a value, by an option's long name, or by a label alone.
_KINDS = {
    "add ID": Kind.OTHER,
    "work COMMAND": Kind.FILE,
    "undo FILE": Kind.UNDO_FILE,
    **{f"context {verb} NAME": Kind.CONTEXT for verb in ("show", "set", "use", "rm", "check")},
    "context": Kind.CONTEXT,
    "fields": Kind.FIELDS,
    "sort": Kind.FIELD,
    "queue": Kind.QUEUE,
    "holder": Kind.HOLDER,
    "FILE": Kind.FILE,
    "DIR": Kind.DIRECTORY,
    "QUEUE": Kind.QUEUE,
    "PATTERN": Kind.QUEUE,
    "ID": Kind.ITEM,
    "SESSION": Kind.HOLDER,
}
# Commands whose arguments name a command or a topic.
_NAMING_SUBJECTS = (("help",), ("man",))


class Parameter(NamedTuple):
    """An option, or an argument of a command.

    Attributes:
        names: The names of an option, the short one first, as in `-q`, `--queue`. An argument has
            none.
        help: One line without a full stop.
        kind: What can be offered for its value.
        label: The name of the value in the help, such as `FORMAT`.
        choices: All possible values, for CHOICES and LIST.
        items: Which items to offer, as `rwq ls` names them, for ITEM.
        repeatable: Whether it may be given more than once.
        about_server: Whether the option selects the server or how to connect to it.
    """

    names: tuple[str, ...]
    help: str
    kind: Kind
    label: str = ""
    choices: tuple[str, ...] = ()
    items: str = ""
    repeatable: bool = False
    about_server: bool = False

    @property
    def takes_value(self) -> bool:
        """Whether it is more than a flag."""
        return self.kind is not Kind.NONE


class CompletionCommand(NamedTuple):
    """A command, or `rwq` itself.

    Attributes:
        path: The words that name it after `rwq`.
        help: One line without a full stop.
        options: Its options, without the common ones.
        arguments: Its arguments, in order. Only the last one can be repeatable.
        commands: Its subcommands.
        fields: The fields of its records.
        is_subject: Whether it only names a command or a topic, as after `rwq help`.
    """

    path: tuple[str, ...]
    help: str
    options: tuple[Parameter, ...]
    arguments: tuple[Parameter, ...]
    commands: "tuple[CompletionCommand, ...]"
    fields: Fields = NO_FIELDS
    is_subject: bool = False

    def walk(self) -> "Iterator[CompletionCommand]":
        """This command and all below it, each before its subcommands."""
        yield self
        for command in self.commands:
            yield from command.walk()


class Spec(NamedTuple):
    """What the scripts are generated from.

    Attributes:
        commands: `rwq` itself and every command below it.
        common: The options that every command accepts, before its name or after it.
    """

    commands: tuple[CompletionCommand, ...]
    common: tuple[Parameter, ...]


def collect() -> Spec:
    """Describe the current command line; this imports every command."""
    root = build_root()
    common = [option for option in _parameters(root) if option.name in _COMMON]
    tree = _command(root, ())
    return Spec(
        tuple(_with_subjects(tree).walk()), tuple(_parameter(option, ()) for option in common)
    )


def _command(command: Any, path: tuple[str, ...]) -> CompletionCommand:
    own = [parameter for parameter in _parameters(command) if parameter.name not in _COMMON]
    inner = command.list_commands(None) if hasattr(command, "list_commands") else ()
    return CompletionCommand(
        path=path,
        help=_one_line(command.get_short_help_str(limit=200)),
        options=tuple(_parameter(one, path) for one in own if one.param_type_name == "option"),
        arguments=tuple(_parameter(one, path) for one in own if one.param_type_name == "argument"),
        commands=tuple(_command(command.get_command(None, name), (*path, name)) for name in inner),
        fields=fields_of(path),
    )


def _with_subjects(root: CompletionCommand) -> CompletionCommand:
    """Add all commands and topics as subcommands of `help` and `man`, to be completed alike."""

    def subject(command: CompletionCommand, prefix: tuple[str, ...]) -> CompletionCommand:
        inner = tuple(subject(one, prefix) for one in command.commands)
        return CompletionCommand(
            (*prefix, *command.path), command.help, (), (), inner, is_subject=True
        )

    def with_subjects(command: CompletionCommand) -> CompletionCommand:
        if command.path not in _NAMING_SUBJECTS:
            return command
        topics = [CompletionCommand((topic,), SUMMARIES[topic], (), (), ()) for topic in Topic]
        subjects = tuple(subject(one, command.path) for one in (*root.commands, *topics))
        return command._replace(arguments=(), commands=subjects)

    return root._replace(commands=tuple(map(with_subjects, root.commands)))


def _parameters(command: Any) -> list[Any]:
    """The parameters in the help of a command, including --help."""
    context = command.context_class(command, **command.context_settings)
    return [one for one in command.get_params(context) if not getattr(one, "hidden", False)]


def _parameter(parameter: Any, path: tuple[str, ...]) -> Parameter:
    is_option = parameter.param_type_name == "option"
    names = (*parameter.opts, *parameter.secondary_opts) if is_option else ()
    is_flag = getattr(parameter, "is_flag", False)
    label = parameter.metavar or max(parameter.opts, key=len).lstrip("-")
    label = "" if is_flag else label.strip("[].,").upper()
    choices = _CHOICES.get(parameter.name, ()) or getattr(parameter.type, "choices", ())
    if is_flag:
        kind = Kind.NONE
    elif choices:
        kind = Kind.LIST if ",..." in (parameter.metavar or "") else Kind.CHOICES
    else:
        keys = (" ".join((*path, label)), parameter.name, label)
        kind = next((_KINDS[key] for key in keys if key in _KINDS), Kind.OTHER)
    return Parameter(
        # The parser does not order the names of --help.
        names=tuple(sorted(names, key=lambda name: name.startswith("--"))),
        help=_one_line(parameter.help),
        kind=kind,
        label=label,
        choices=tuple(map(str, choices)),
        items=_ITEMS.get(path[0], "all") if kind is Kind.ITEM else "",
        repeatable=parameter.multiple if is_option else parameter.nargs != 1,
        about_server=parameter.name in _COMMON - _NOT_ABOUT_SERVER,
    )


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split()).removesuffix(".")
