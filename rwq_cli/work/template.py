"""The command of each item: `{id}`, `{file}` and `{data}` in its words."""

import re
from collections.abc import Sequence
from enum import StrEnum

from rwq_cli.core.errors import InvalidArgument


class Input(StrEnum):
    """How a command gets the data of its item: the values of `--input`."""

    STDIN = "stdin"
    FILE = "file"
    ARG = "arg"
    NONE = "none"


# The input that replaces each placeholder; `{id}` is always replaced.
_NEEDS = {b"{file}": Input.FILE, b"{data}": Input.ARG}
_PLACEHOLDER = re.compile(rb"\{(?:id|file|data)\}")


class CommandTemplate:
    """The words of a command, in which placeholders stand for the item.

    Args:
        words: The program, which is taken literally, and its arguments.
        input: How the command gets the data.
    """

    def __init__(self, words: Sequence[bytes], input: Input = Input.STDIN) -> None:
        self.words = words
        self.input = input
        self._used = {found for word in words[1:] for found in _PLACEHOLDER.findall(word)}

    def check(self, *, input_is_given: bool, is_batch: bool) -> None:
        """Check that placeholders and input agree.

        Args:
            input_is_given: Whether the input was chosen, and is not the default.
            is_batch: Whether a command gets several items.

        Raises:
            InvalidArgument: They do not.
        """
        if is_batch and self._used:
            raise InvalidArgument(
                f"{min(self._used).decode()} cannot be used with --batch",
                "the items are JSON lines on stdin",
            )
        for name, needed in _NEEDS.items():
            text = name.decode()
            if self.input is needed and name not in self._used:
                raise InvalidArgument(
                    f"--input {needed} needs {text} among the arguments of the command",
                    f"put {text} where the {needed} belongs",
                )
            if name in self._used and not input_is_given:
                raise InvalidArgument(
                    f"{text} needs --input {needed}",
                    f"to pass {text} literally, give --input stdin",
                )

    def arguments(self, item_id: bytes, data: bytes, file: bytes) -> list[bytes]:
        """The words for one item.

        Args:
            item_id: Its ID.
            data: Its data.
            file: The path of the file that holds the data; unused unless the input is a file.
        """
        if not self._used:
            return list(self.words)
        values = {b"{id}": item_id}
        if self.input is Input.FILE:
            values[b"{file}"] = file
        elif self.input is Input.ARG:
            values[b"{data}"] = data

        def value(found: re.Match[bytes]) -> bytes:
            return values.get(found[0], found[0])

        # In one pass: the data may hold a placeholder.
        return [self.words[0], *(_PLACEHOLDER.sub(value, word) for word in self.words[1:])]
