"""The keys of a queue with two items, and the commands that upstream's programs send.

Every field of `Keys` is a key of the protocol, but for the last four, which are what a witness
notes: how often rwq pushed each ID, how many lives it had, what of ours protects it, and who
deleted its data.
"""

from collections.abc import Callable, Hashable
from typing import Any, get_origin, get_type_hints

IDS = ("a", "b")
# Lease names: that of later versions, and that of 0.1.
NAMES = ("new", "old")
GUARDS = ("delayed", "buried", "settling")
# How long each value lasts when it is put on a server, seconds; all sessions last equally long.
LATER_S, MARGIN_S, SESSION_S, SETTLING_S = 3600, 60, 1000, 30

Frozen = tuple[Hashable, ...]
# How many parts of it are keys on a server; the part after them is in the values of some.
KEY_PARTS = 9


class Keys:
    """All keys at one instant; `frozen` is the same as a value.

    Lists are newest first. A life is a number from 1 on, which stands for an item's data.
    """

    # ID to its life.
    data: dict[str, int]
    main: list[str]
    processing: list[str]
    # The list of a 0.1 cleaner.
    cleaning: list[str]
    # ID to the holder: under the later name, and under that of 0.1.
    new: dict[str, str]
    old: dict[str, str]
    # ID to `later` or `due`.
    delayed: dict[str, str]
    buried: set[str]
    # ID to how often a clean returned it, or an attempt failed.
    returns: dict[str, int]
    # ID to how often rwq pushed it; its settling leases bear this number as their time.
    pushed: dict[str, int]
    # ID to how many lives it had.
    lives: dict[str, int]
    # ID to why no cleaner may touch it, until somebody else changes its leases or lists.
    guarded: dict[str, str]
    # ID and life of every complete that reported success, in order.
    wins: list[tuple[str, int]]

    def __init__(self, frozen: Frozen | None = None) -> None:
        parts = frozen or ((),) * len(_PARTS)
        for (name, kind, _), part in zip(_PARTS, parts, strict=True):
            setattr(self, name, kind(part))

    def frozen(self) -> Frozen:
        return tuple([freeze(getattr(self, name)) for name, _, freeze in _PARTS])

    def leases(self, name: str) -> dict[str, str]:
        return self.new if name == "new" else self.old

    def entries(self, name: str) -> list[str]:
        return {"main": self.main, "processing": self.processing, "cleaning": self.cleaning}[name]

    def create(self, item_id: str) -> None:
        self.lives[item_id] = self.lives.get(item_id, 0) + 1
        self.data[item_id] = self.lives[item_id]

    # Upstream's commands, one method each. What they change is no longer protected by us.

    def set_data(self, item_id: str) -> None:
        """SET, as 0.1 adds; over an item that exists it is the same item with other data."""
        if item_id in self.data:
            return
        self.guarded.pop(item_id, None)
        self.create(item_id)

    def setnx_data(self, item_id: str) -> bool:
        if item_id in self.data:
            return False
        self.set_data(item_id)
        return True

    def del_data(self, item_id: str, believed: int = 0) -> bool:
        """DEL, which decides who completed it; 0.1 reports success whatever its DEL found."""
        self.guarded.pop(item_id, None)
        life = self.data.pop(item_id, 0)
        if believed or life:
            self.wins.append((item_id, believed or life))
        return bool(life)

    def exists_data(self, item_id: str) -> bool:
        return item_id in self.data

    def get(self, item_id: str) -> int:
        return self.data.get(item_id, 0)

    def rpoplpush(self) -> str | None:
        if not self.main:
            return None
        item_id = self.main.pop()
        self.processing.insert(0, item_id)
        self.guarded.pop(item_id, None)
        return item_id

    def setex(self, name: str, item_id: str, holder: str) -> None:
        self.guarded.pop(item_id, None)
        self.leases(name)[item_id] = holder

    def del_lease(self, name: str, item_id: str) -> None:
        self.guarded.pop(item_id, None)
        self.leases(name).pop(item_id, None)

    def exists_lease(self, name: str, item_id: str) -> tuple[bool, int]:
        """Also which push of ours of this item was the last, for the witness."""
        return item_id in self.leases(name), self.pushed.get(item_id, 0)

    def lpush(self, key: str, item_id: str, looked: int | None = None) -> None:  # noqa: ARG002
        """`looked` is what a cleaner's witness noted when it saw no lease."""
        if key != "cleaning":
            self.guarded.pop(item_id, None)
        self.entries(key).insert(0, item_id)

    def lrem(self, key: str, item_id: str) -> bool:
        entries = self.entries(key)
        if item_id not in entries:
            return False
        if key != "cleaning":
            self.guarded.pop(item_id, None)
        entries[:] = [entry for entry in entries if entry != item_id]
        return True

    def lpos(self, key: str, item_id: str) -> bool:
        return item_id in self.entries(key)

    def lrange(self, key: str) -> tuple[str, ...]:
        return tuple(self.entries(key))

    def keys_data(self) -> tuple[str, ...]:
        return tuple(sorted(self.data))

    # What time does.

    def expire(self, item_id: str) -> None:
        """The leases of an ID end that were set together, those of a session first."""
        self.guarded.pop(item_id, None)
        held = [(name, self.leases(name).get(item_id)) for name in NAMES]
        values = {value for _, value in held if value and value != "buried"}
        if "delayed" in values and self.delayed.get(item_id) == "later":
            # The guard outlives the due time.
            values.discard("delayed")
        ending = min(values, key=lambda value: (value in GUARDS, value), default=None)
        for name, value in held:
            if value is not None and value == ending:
                del self.leases(name)[item_id]

    def come_due(self, item_id: str) -> None:
        self.delayed[item_id] = "due"


_FREEZES: dict[Any, Callable[[Any], Frozen]] = {
    dict: lambda part: tuple(sorted(part.items())),
    list: tuple,
    set: lambda part: tuple(sorted(part)),
}
_PARTS = [
    (name, kind, _FREEZES[kind])
    for name, kind in ((n, get_origin(hint)) for n, hint in get_type_hints(Keys).items())
]
