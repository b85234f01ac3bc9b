"""Whose leases an operation may end."""

from typing import Any, NamedTuple


class LeasePolicy(NamedTuple):
    """Whose leases an operation may end when it moves an item.

    Attributes:
        own_holder: The holder whose leases it may always end. It may not end those of another one
            that has leased the item under the other lease name.
        force: Whether it may end all other leases, too.
        own_only: Whether it skips all items that its own holder has not leased alone.
    """

    own_holder: bytes
    force: bool
    own_only: bool = False

    def args(self) -> dict[str, Any]:
        """The script arguments."""
        return self._asdict()
