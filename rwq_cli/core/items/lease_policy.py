"""Whose leases an operation may end."""

from typing import NamedTuple


class LeasePolicy(NamedTuple):
    """Whose leases an operation may end when it moves an item.

    Attributes:
        own_holder: The holder whose leases it may always end.
        force: Whether it may end all other leases, too.
    """

    own_holder: bytes
    force: bool

    def args(self) -> tuple[object, ...]:
        """The script arguments."""
        return self.own_holder, "1" if self.force else "0"
