"""Reads the result for `rwq complete` from a file or stdin."""

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import Environment
from rwq_cli.input.files import ITEM_BYTES_MAX, open_input
from rwq_cli.input.streams import whole


def read_result(environment: Environment, name: str) -> bytes:
    """The bytes of a file, or of stdin for `-`.

    Raises:
        InvalidArgument: It cannot be read, or is larger than a server accepts.
    """
    if not name:
        raise InvalidArgument(
            "the name of the result's file is empty", "is a variable in the script unset?"
        )
    if name == "-":
        if environment.stdin_is_closed:
            raise InvalidArgument(
                "stdin is closed, so the result cannot be read from it",
                "name a file, or omit --result to store an outcome without a result",
            )
        if environment.stdin_is_terminal:
            environment.note("reading the result from the terminal; Ctrl-D ends")
        result = whole(environment.stdin, environment.flush, bytes_max=ITEM_BYTES_MAX)
    else:
        with open_input(name) as file:
            result = whole(file, environment.flush, bytes_max=ITEM_BYTES_MAX)
    if len(result) > ITEM_BYTES_MAX:
        raise InvalidArgument(
            "the result is larger than the 512 MB that a server accepts", "keep it elsewhere"
        )
    return result
