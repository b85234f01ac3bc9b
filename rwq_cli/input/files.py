"""Files that the user named."""

from pathlib import Path
from typing import BinaryIO, cast

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import os_reason

# The server takes no single value above its proto-max-bulk-len, 512 MB unless it is set.
ITEM_BYTES_MAX = 512 * 1024 * 1024
TOO_LARGE = f"larger than the {ITEM_BYTES_MAX >> 20} MB that a server accepts"


class BadRecord(Exception):
    """A record of the input cannot be used; the text is the reason."""


def open_input(name: str) -> BinaryIO:
    """Open a file for reading; errors name the file.

    Raises:
        InvalidArgument: It cannot be opened, or a later read fails.
    """
    try:
        return cast(BinaryIO, _NamedStream(name, Path(name).open("rb")))
    except OSError as error:
        raise _unreadable(name, error)


class _NamedStream:
    def __init__(self, name: str, stream: BinaryIO) -> None:
        self._name = name
        self._stream = stream
        self.fileno = stream.fileno
        self.close = stream.close

    def read(self, size: int = -1) -> bytes:
        try:
            return self._stream.read(size)
        except OSError as error:
            raise _unreadable(self._name, error)

    def __enter__(self) -> "_NamedStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _unreadable(name: str, error: OSError) -> InvalidArgument:
    reason = os_reason(error)
    return InvalidArgument(f"cannot read {name}: {reason}", "check the file's name")
