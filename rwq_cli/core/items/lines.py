"""The lines of an export or undo file, from which items and results are restored."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from rwq_cli.core.batches import FLUSH, Budget, Flush
from rwq_cli.core.inspect.results import Result
from rwq_cli.core.state.snapshots import ItemSnapshot


class Line(NamedTuple):
    """A line of an export: its number in the file, from 1 for the header, and what it has."""

    number: int
    entry: ItemSnapshot | Result
    # For what an import replaced, what replaced it, as in `Journal`: the entry is restored only in
    # place of that.
    replaced_by: str | None = None

    @property
    def item(self) -> ItemSnapshot:
        assert isinstance(self.entry, ItemSnapshot)
        return self.entry


def batches_of_a_kind(
    lines: Iterable[Line | Flush], limit: Budget
) -> Iterator[tuple[type[ItemSnapshot | Result], list[Line]]]:
    """Batches of lines of one kind, after it, with each ID at most once. An empty one is a `FLUSH`,
    which does not end a kind."""
    batch: list[Line] = []
    ids: set[bytes] = set()
    size = 0
    kind: type[ItemSnapshot | Result] = ItemSnapshot
    for line in chain(lines, (FLUSH,)):
        if batch and (
            isinstance(line, Flush)
            or len(batch) >= limit.items
            or size >= limit.bytes
            or line.entry.item_id in ids
            or type(line.entry) is not kind
        ):
            yield kind, batch
            batch, ids, size = [], set(), 0
        if isinstance(line, Flush):
            yield kind, []
            continue
        entry = line.entry
        kind = type(entry)
        batch.append(line)
        ids.add(entry.item_id)
        size += (entry.result_bytes or 0) if isinstance(entry, Result) else len(entry.data)
