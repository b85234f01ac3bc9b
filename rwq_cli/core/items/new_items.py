"""Items to add, and when they are due."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from rwq_cli.core.clock import unix_ms

if TYPE_CHECKING:
    from datetime import datetime


class Due(NamedTuple):
    """When a delayed item is due, by the server's clock. A time in the past means at once.

    Attributes:
        ms: The delay in milliseconds, or the due time in whole unix ms.
        from_now: Whether `ms` is a delay, which starts when the server adds the item.
    """

    ms: float
    from_now: bool

    @classmethod
    def after(cls, delay_s: float) -> "Due":
        """Due this many seconds after the server adds the item."""
        return cls(delay_s * 1000, from_now=True)

    @classmethod
    def at(cls, when: "datetime | float") -> "Due":
        """Due at this time: an aware datetime, or unix seconds."""
        return cls(unix_ms(when), from_now=False)


class NewItem(NamedTuple):
    """An item to add.

    Attributes:
        item_id: Its ID; any bytes but the empty string.
        data: Its payload.
        due: When it is due; None if it is not delayed.
    """

    item_id: bytes
    data: bytes
    due: Due | None = None


class NewItems(NamedTuple):
    """Items to add in one call, as columns; `random_ids`: no other item ever had one of the IDs."""

    ids: list[bytes]
    data: list[bytes]
    dues: "list[Due | None] | None" = None
    random_ids: bool = False

    def split(self, items_max: int) -> "Iterator[NewItems]":
        """The same items in parts, each with at most this many."""
        if len(self.ids) <= items_max:
            yield self
            return
        for start in range(0, len(self.ids), items_max):
            part = slice(start, start + items_max)
            dues = None if self.dues is None else self.dues[part]
            yield NewItems(self.ids[part], self.data[part], dues, self.random_ids)
