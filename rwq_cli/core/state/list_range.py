"""Where in the lists an operation finds its IDs."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple


class Where(StrEnum):
    """How the caller of a script knows where IDs are: see `core/lua/lib/locate.lua`."""

    NAME = "name"
    UNLISTED = "unlisted"
    PROCESSING = "processing"
    MAIN = "main"
    LEASED = "leased"


class ListRange(NamedTuple):
    """IDs, and where they were seen.

    Attributes:
        where: The list, or how to find them.
        offset: How many entries to skip at the right end of the list; 0 without a list.
        entries: How many entries to read after those.
        ids: The IDs.
    """

    where: Where
    offset: int
    entries: int
    ids: Sequence[bytes]

    def args(self, token: bytes) -> tuple[object, ...]:
        """The script arguments; `token` is unique to this run, and never an ID."""
        return self.where.value, self.offset, self.entries, token
