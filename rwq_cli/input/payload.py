"""Reads payloads and results from a file or stdin."""

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import Environment
from rwq_cli.input.files import ITEM_BYTES_MAX, TOO_LARGE, open_input
from rwq_cli.input.streams import whole


def read_result(environment: Environment, name: str) -> bytes:
    """The result that `rwq complete` keeps; see `_read`."""
    hint = "name a file, or omit --result to store an outcome without a result"
    return _read(environment, name, "result", hint)


def read_payload(environment: Environment, name: str) -> bytes:
    """The new data of an item; see `_read`."""
    return _read(environment, name, "payload", "name a file")


def _read(environment: Environment, name: str, what: str, closed_hint: str) -> bytes:
    """The bytes of a file, or of stdin for `-`.

    Raises:
        InvalidArgument: It cannot be read, or is larger than a server accepts.
    """
    if not name:
        raise InvalidArgument(
            f"the name of the {what}'s file is empty", "is a variable in the script unset?"
        )
    if name == "-":
        if environment.stdin_is_closed:
            raise InvalidArgument(
                f"stdin is closed, so the {what} cannot be read from it", closed_hint
            )
        if environment.stdin_is_terminal:
            environment.note(f"reading the {what} from the terminal; Ctrl-D ends")
        result = whole(environment.stdin, environment.flush, bytes_max=ITEM_BYTES_MAX)
    else:
        with open_input(name) as file:
            result = whole(file, environment.flush, bytes_max=ITEM_BYTES_MAX)
    if len(result) > ITEM_BYTES_MAX:
        raise InvalidArgument(f"the {what} is {TOO_LARGE}", "keep it elsewhere")
    return result
