"""Recognizing, in a second look, the items that a first look saw."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rwq_cli.core.lua import IDENTITY_DIGITS, PUSH_DIGITS

_IDENTITY_BITS = 4 * IDENTITY_DIGITS
_FORMAT = f"0{IDENTITY_DIGITS}x"
_IDENTITY = (1 << _IDENTITY_BITS) - 1
_PUSH_BITS = 4 * PUSH_DIGITS
_PUSH = (1 << _PUSH_BITS) - 1
# Stands for an unknown place: longer than any list.
_UNKNOWN_PLACE = (1 << 40) - 1
_UNPLACED = _UNKNOWN_PLACE << _IDENTITY_BITS


class Seen(Mapping[bytes, str]):
    """Identities and places in processing by ID, packed into one integer each.

    An item may be completed, and a new one added under its ID, between the two looks. The new item
    has other data, or its entry is further to the left: entries are pushed at the left end, so an
    entry that stays moves only to the right. Rotating the list also moves entries to the left; an
    item that cannot be distinguished from a new one is left for the next clean.

    Or another clean may have returned the item: then a worker may have popped it, and be about to
    set its lease. An identity ends with the time when rwq pushed the item, which its settling lease
    tells while it lasts; a time that the first look did not see means such a push.
    """

    def __init__(self) -> None:
        self._values: dict[bytes, int] = {}

    def note(self, item_id: bytes, identity: bytes, place: int = _UNKNOWN_PLACE) -> None:
        """Note an item.

        Args:
            item_id: The ID.
            identity: Its identity, from a script; b"" is ignored.
            place: Its place in processing, counted from the right end, if known.
        """
        if identity:
            self._values[item_id] = place << _IDENTITY_BITS | int(identity, 16)

    def place(self, places: Mapping[bytes, int]) -> None:
        """Note the places of items that have none yet; see `note`."""
        values = self._values
        for item_id in values.keys() & places.keys():
            if values[item_id] >= _UNPLACED:
                place = places[item_id] << _IDENTITY_BITS
                values[item_id] = place | values[item_id] & _IDENTITY

    def remove(self, ids: Iterable[bytes]) -> None:
        """Forget items."""
        for item_id in ids:
            self._values.pop(item_id, None)

    def moved(self, places: Mapping[bytes, int]) -> list[bytes]:
        """The items that were in processing and are further to the left now.

        Args:
            places: Their places in processing now, counted from the right end.
        """
        get, bits = self._values.get, _IDENTITY_BITS
        return [i for i, place in places.items() if get(i, _UNPLACED) >> bits < place]

    def is_same(self, item_id: bytes, identity: bytes) -> bool:
        """Whether an item has the data that was seen, and rwq has not pushed it since.

        True if the item was not noted. The same as `is_same` in `core/lua/lib/identity.lua`.
        """
        value = self._values.get(item_id)
        if value is None or not identity:
            return value is None
        difference = int(identity, 16) ^ value & _IDENTITY
        is_pushed = int(identity, 16) & _PUSH
        return difference >> _PUSH_BITS == 0 and not (is_pushed and difference & _PUSH)

    def is_still(self, item_id: bytes, identity: bytes, places: Sequence[int]) -> bool:
        """Whether an ID still names the item that was seen, by its data and its place.

        Args:
            item_id: The ID.
            identity: Its identity now.
            places: Its places in processing now, counted from the right end.
        """
        return self.is_same(item_id, identity) and not (places and self.moved({item_id: places[0]}))

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._values

    def get(self, item_id: bytes, default: Any = None) -> Any:
        value = self._values.get(item_id)
        return default if value is None else format(value & _IDENTITY, _FORMAT)

    def __getitem__(self, item_id: bytes) -> str:
        return format(self._values[item_id] & _IDENTITY, _FORMAT)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
