"""What `rwq help` and `rwq man` can explain: commands, by their parsers, and topics."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Annotated, Any

import typer

from rwq_cli.cli.app import COMMANDS, build_root
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.help.topics import Topic

SubjectArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[COMMAND|TOPIC]...",
        help=f"A command, as in clean light, or a topic: {', '.join(Topic)}.",
    ),
]


def find_subject(verb: str, words: Sequence[str]) -> Any:
    """What these words name.

    Args:
        verb: `help` or `man`, for a hint.
        words: The name of a topic, or a command's name with its group's; none for rwq itself.

    Returns:
        A `Topic`, or the parser's context of a command.

    Raises:
        InvalidArgument: There is no such topic or command.
    """
    if words and words[0] in set(Topic):
        if len(words) > 1:
            raise InvalidArgument(f"{words[0]} is a topic, not a group", f"leave out {words[1]}")
        return Topic(words[0])
    if words and words[0] not in COMMANDS and (near := get_close_matches(words[0], Topic, 1)):
        raise InvalidArgument(f"no command or topic {words[0]!r}", f"try rwq {verb} {near[0]}")
    context = root_context()
    rest = list(words)
    while rest:
        if not hasattr(context.command, "resolve_command"):
            raise InvalidArgument(
                f"{context.command_path} has no command {rest[0]!r}",
                f"see {context.command_path} --help",
            )
        name, command, rest = context.command.resolve_command(context, rest)
        context = _context(command, name, context)
    return context


def root_context() -> Any:
    """The context of rwq itself."""
    return _context(build_root(), "rwq", None)


def inner_contexts(context: Any) -> list[Any]:
    """The contexts of the commands of a group, in the order of the help; none for a command."""
    command = context.command
    names = command.list_commands(context) if hasattr(command, "list_commands") else ()
    return [_context(command.get_command(context, name), name, context) for name in names]


def _context(command: Any, name: str, parent: Any) -> Any:
    return typer.Context(command, info_name=name, parent=parent, **command.context_settings)
