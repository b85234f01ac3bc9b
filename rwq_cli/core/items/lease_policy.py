"""Whose leases an operation may end."""

from typing import NamedTuple


class LeasePolicy(NamedTuple):
    """Whose leases may be ended when an item is taken from where it is.

    Attributes:
        own_holder: Those of this holder.
        force: Those of all others, too.
    """

    own_holder: bytes
    force: bool

    def args(self) -> tuple[object, ...]:
        """The arguments that scripts take for it."""
        return self.own_holder, "1" if self.force else "0"
