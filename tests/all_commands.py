"""Every command of rwq, for tests and for the reference."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from rwq_cli.cli.app import COMMANDS, load_command
from rwq_cli.cli.manual import Manual


class CommandInfo(NamedTuple):
    """A command for the reference: its name with the group's, Typer's object, and its manual."""

    path: str
    command: Any
    manual: Manual


def all_commands() -> list[CommandInfo]:
    """Every command except groups, in the order of the help."""
    return [
        CommandInfo(" ".join(path), leaf, leaf.manual)
        for name in COMMANDS
        for path, leaf in _leaves(load_command(name), (name,))
    ]


def _leaves(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not hasattr(command, "commands"):
        yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _leaves(inner, (*path, name))
