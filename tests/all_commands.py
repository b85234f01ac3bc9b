"""Every command of rwq, for tests and for the reference."""

from typing import Any, NamedTuple

from rwq_cli.cli.app import COMMANDS, leaves, load_command
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
        for path, leaf in leaves(load_command(name), (name,))
    ]
