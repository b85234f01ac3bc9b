"""IDs from arguments and stdin."""

import os
from collections.abc import Iterable, Iterator, Sequence

from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import Environment
from rwq_cli.input.streams import split


def read_ids(
    environment: Environment, arguments: Sequence[str], *, null_separated: bool
) -> Iterator[bytes | Flush]:
    """The IDs of a command.

    Args:
        environment: The streams.
        arguments: IDs, or `-` alone for stdin.
        null_separated: True if IDs on stdin end with NUL, not with a newline.

    Raises:
        InvalidArgument: There are no arguments, one is empty, or `-` is not the only one.
    """
    if not arguments:
        raise InvalidArgument("no IDs given", "name them, or give - to read them from stdin")
    if "-" not in arguments:
        if "" in arguments:
            raise InvalidArgument("an ID is empty", "is a variable in the script unset?")
        return iter([os.fsencode(argument) for argument in arguments])
    if len(arguments) > 1:
        raise InvalidArgument(
            "- reads the IDs from stdin, and cannot be combined with other IDs",
            "drop the other IDs",
        )
    if environment.stdin_is_terminal:
        environment.note("reading IDs from the terminal, one per line; Ctrl-D ends")
    separator = b"\0" if null_separated else b"\n"
    return _flat(split(environment.stdin, separator, environment.flush))


def _flat(groups: Iterable[list[bytes] | Flush]) -> Iterator[bytes | Flush]:
    for group in groups:
        if isinstance(group, Flush):
            yield group
        else:
            yield from filter(None, group)
