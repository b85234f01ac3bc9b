"""The reasons of items that a move to another server, or another slot, has buried meanwhile."""

import re
from typing import NamedTuple

from rwq_cli.core.keys import MOVING, MOVING_HERE

_END = b"; the same rwq mv finishes it"
_REASON = re.compile(b"(%b to|%b from) (.+)%b" % (MOVING, MOVING_HERE, _END), re.DOTALL)


class Transit(NamedTuple):
    """The queue at the other end of a move, and its server; None if it is that of this queue.

    `is_copy` is true at the destination, where the item is a copy until it has left the other end.
    """

    is_copy: bool
    queue: bytes
    server: bytes | None = None

    @property
    def reason(self) -> bytes:
        """Why the item is buried."""
        place = self.queue if self.server is None else b"%b on %b" % (self.queue, self.server)
        return (MOVING_HERE + b" from " if self.is_copy else MOVING + b" to ") + place + _END


def transit_of(reason: bytes | None) -> Transit | None:
    """What the reason of a buried item says of a move; None if it is another reason."""
    found = _REASON.fullmatch(reason or b"")
    if found is None:
        return None
    is_copy, place = found[1].startswith(MOVING_HERE), found[2]
    queue, on, server = place.rpartition(b" on ")
    # The address of a server has no spaces.
    if on and b"://" in server:
        return Transit(is_copy, queue, server)
    return Transit(is_copy, place)
