"""The file to which items are written before an operation removes or replaces them."""

from collections.abc import Sequence
from typing import Protocol

from rwq_cli.core.inspect.results import Result
from rwq_cli.core.state.snapshot import ItemSnapshot


class Journal(Protocol):
    """A file to which items are written before they are removed or replaced.

    `replaced_by` says for each item or result what replaces it: the SHA-256 of the new data, in
    hexadecimal, or the completion time of the new result. Without it, they are removed.
    """

    def write(self, items: Sequence[ItemSnapshot], replaced_by: Sequence[str] = ()) -> None:
        """Write items durably; raise if that fails."""

    def write_results(self, results: Sequence[Result], replaced_by: Sequence[str] = ()) -> None:
        """Write results durably; raise if that fails."""

    def record_removed_except(self, kept: Sequence[bytes]) -> None:
        """Record that all items written so far were removed or replaced, except these."""


class NoJournal:
    """A journal that writes nothing, for items that are in another queue or already in a file."""

    def write(self, items: Sequence[ItemSnapshot], replaced_by: Sequence[str] = ()) -> None:
        """Do nothing."""

    def write_results(self, results: Sequence[Result], replaced_by: Sequence[str] = ()) -> None:
        """Do nothing."""

    def record_removed_except(self, kept: Sequence[bytes]) -> None:
        """Do nothing."""
