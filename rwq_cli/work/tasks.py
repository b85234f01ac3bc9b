"""Named tasks: JSON data that names a program of a directory, and its arguments."""

import json
import os
from typing import Any

from msgspec import Raw
from msgspec.json import encode

from rwq_cli.work.programs import BadArguments


def read_task(directory: bytes, data: bytes) -> list[bytes]:
    """The path of a program and its arguments: `["NAME", [ARGS...]]` or `{"task": "NAME", ...}`."""
    try:
        # Numbers stay as they are: a float would lose digits.
        value = json.loads(data, parse_float=Raw, parse_int=Raw, parse_constant=Raw)
    except (ValueError, RecursionError):
        raise BadArguments("no task: the data is not JSON") from None
    match value:
        case {"task": str(name)} | [str(name)]:
            arguments: list[Any] = []
        case [str(name), list(arguments)]:
            pass
        case _:
            raise BadArguments('no task: neither ["NAME", [ARGS...]] nor {"task": "NAME", ...}')
    # A path would leave the directory, and NUL ends a name.
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise BadArguments(f"unknown task {name!r}: not the name of a program")
    program = os.path.join(directory, os.fsencode(name.encode("utf-8", "replace")))
    if not os.path.isfile(program):
        raise BadArguments(f"unknown task {name!r}: no such program in {os.fsdecode(directory)}")
    if not os.access(program, os.X_OK):
        raise BadArguments(f"unknown task {name!r}: its program is not executable")
    try:
        return [program, *map(_argument, arguments)]
    except (ValueError, RecursionError) as error:
        raise BadArguments(f"no task: an argument cannot be written as JSON: {error}") from None


def _argument(value: Any) -> bytes:
    """A string as it is, any other value as JSON."""
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else encode(value)
