"""What many tests need besides fixtures: IDs, lines of an export, screens, a journal."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import redis

from rwq_cli.core.inspect.results import Result
from rwq_cli.core.items.lines import Line
from rwq_cli.core.state.snapshots import ItemSnapshot

try:
    from inline_snapshot import snapshot as snapshot
except ImportError:
    # It rewrites screens; to compare with them needs nothing.
    def snapshot(value: Any) -> Any:  # type: ignore[no-redef]
        return value


def numbered(count: int, name: bytes = b"%04d") -> list[bytes]:
    """So many IDs, in order."""
    return [name % number for number in range(count)]


def many(raw: redis.Redis, count: int, place: str = "queue") -> list[bytes]:
    """So many items in a list of `jobs`; returns their IDs, next first."""
    ids = numbered(count)
    raw.mset({b"jobs:item:" + item_id: b"data of " + item_id for item_id in ids})
    raw.lpush(f"jobs:{place}", *ids)
    return ids


def lines_of(entries: Iterable[ItemSnapshot | Result]) -> Iterator[Line]:
    """Number entries like the lines of a file that contains only them."""
    return (Line(number, entry) for number, entry in enumerate(entries, 2))


class Journal:
    """Remembers what was written, and which of it was not taken after all."""

    def __init__(self) -> None:
        self.written: list[ItemSnapshot] = []
        self.replaced_by: dict[bytes, str] = {}
        self.results: list[Result] = []
        self.kept: list[bytes] = []
        self.in_doubt: list[bytes] = []
        self._standing: dict[bytes, None] = {}
        self.after_write: Callable[[], object] = lambda: None

    def write(
        self, entries: Sequence[ItemSnapshot | Result], replaced_by: Sequence[str] = ()
    ) -> None:
        items = [entry for entry in entries if isinstance(entry, ItemSnapshot)]
        self.results += (entry for entry in entries if isinstance(entry, Result))
        self.written += items
        ids = [item.item_id for item in items]
        self.in_doubt += ids
        self._standing.update(dict.fromkeys(ids))
        self.replaced_by.update(zip(ids, replaced_by, strict=False))
        self.after_write()

    def record_removed_except(self, kept: Sequence[bytes]) -> None:
        assert set(kept) <= set(self.in_doubt)
        self.in_doubt.clear()
        self.kept += kept
        for item_id in kept:
            del self._standing[item_id]

    @property
    def ids(self) -> list[bytes]:
        """What was written and taken, or is in doubt."""
        return list(self._standing)
