"""Named tasks: JSON data that names a program of a directory, and its arguments."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Raw, ValidationError
from msgspec.json import Decoder

from rwq_cli.output.json_text import check_utf8, string_of, text_of
from rwq_cli.work.child import BadArguments

_array = Decoder(list[Raw]).decode
_object = Decoder(dict[str, Raw]).decode
_NO_TASK = 'no task: neither ["NAME", [ARGS...]] nor {"task": "NAME", ...}'


class UnknownTask(BadArguments):
    """The data names no program of the directory."""


class Task(NamedTuple):
    """A named task.

    Attributes:
        program: The path of its program.
        arguments: The arguments of the program.
    """

    program: bytes
    arguments: list[bytes]


def read_task(directory: bytes, data: bytes) -> Task:
    """The task of an item: `["NAME", [ARGS...]]` or `{"task": "NAME", ...}`.

    Args:
        directory: The directory of the programs.
        data: The data of the item.

    Raises:
        UnknownTask: The data is neither, or there is no such program.
    """
    try:
        check_utf8(data)
        name, arguments = _parts(data)
        words = list(map(text_of, arguments))
    except ValidationError:
        raise UnknownTask(_NO_TASK) from None
    except (ValueError, RecursionError):
        raise UnknownTask("no task: the data is not JSON") from None
    # A path would leave the directory, and NUL ends a name.
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise UnknownTask(f"unknown task {name!r}: not the name of a program")
    program = os.path.join(directory, os.fsencode(name.encode("utf-8", "replace")))
    if not os.path.isfile(program):
        raise UnknownTask(f"unknown task {name!r}: no such program in {os.fsdecode(directory)}")
    if not os.access(program, os.X_OK):
        raise UnknownTask(f"unknown task {name!r}: its program is not executable")
    return Task(program, words)


def _parts(data: bytes) -> tuple[str, Sequence[Raw]]:
    """The name and the arguments; `ValidationError` if the data is JSON of another kind."""
    if data.lstrip()[:1] == b"{":
        return string_of(_object(data).get("task", Raw(b"null"))), []
    parts = _array(data)
    if not 1 <= len(parts) <= 2:
        raise ValidationError(_NO_TASK)
    return string_of(parts[0]), _array(parts[1]) if len(parts) == 2 else []
