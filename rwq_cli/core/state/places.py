"""Where IDs are in the lists, as operations on them take it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple


class Where(StrEnum):
    """How the caller of a script knows where IDs are: see `core/lua/lib/locate.lua`."""

    NAME = "name"
    UNLISTED = "unlisted"
    PROCESSING = "processing"
    MAIN = "main"


class ListRange(NamedTuple):
    """IDs, and where they were seen.

    Attributes:
        where: How that is known.
        offset: How many entries at the right end of that list to skip; 0 for none of the two lists.
        entries: How many entries to read behind those.
        ids: The IDs.
    """

    where: Where
    offset: int
    entries: int
    ids: Sequence[bytes]

    def args(self, mark: bytes) -> tuple[object, ...]:
        """The arguments that scripts take for it; `mark` is no ID, and unique to this run."""
        return self.where.value, self.offset, self.entries, mark
