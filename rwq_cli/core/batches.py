"""What one call may take of the server; splitting work into calls; what was acknowledged."""

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from math import inf
from typing import NamedTuple, TypeVar

from rwq_cli.core.errors import ServerError

T = TypeVar("T")
Batch = TypeVar("Batch", bound=Sized)


class ProgressListener:
    """Receives the progress of long operations, and ignores it; see `Connection.progress`."""

    def begin(self, what: str, total: int | Callable[[], int] | None = None) -> None:
        """A stage of about `total` steps begins, such as `reading the data keys`.

        A function is called only if progress is shown, and before the stage sends anything.
        """

    def advance(self, count: int) -> None:
        """`count` more items or entries are done."""

    def hide(self) -> None:
        """Make room for other output; the work continues after it."""


class Flush:
    """In a stream: the source has no more entries for now, so send the batch as it is."""


FLUSH = Flush()


class Budget(NamedTuple):
    """What one call may take of the server, while all other clients wait: some five milliseconds.

    Attributes:
        items: How many items to read or change; the header of each script says how many.
        bytes: How much data to copy, compare or hash, before the last item. Hashing this much
            takes a millisecond and a half.
        entries: How many list entries to pass over. LREM and LPOS compare about 100 in a
            microsecond.
    """

    items: int = 1000
    bytes: int = 1024 * 1024
    entries: int = 500_000

    def split(self, entries: Iterable[T | Flush], size_of: Callable[[T], int]) -> Iterator[list[T]]:
        """Split a stream, each of whose entries has so many bytes, into those of single calls."""
        return in_batches(entries, items_max=self.items, size_max=self.bytes, size_of=size_of)


BUDGET = Budget()
# Longer than any list. Larger numbers would overflow in the server.
LONGEST_LIST = 2**62
# A call that takes longer than this probably comes over a long line.
LONG_LINE_S = 0.01
# Looking up one ID scans the whole lists; reading them in pages costs about as much as this many.
FEW_IDS = 30
# A stream of IDs is read in blocks of this many, so that memory stays bounded while one walk over
# a list serves a whole block.
BLOCK_IDS = 200_000


def in_batches(
    entries: Iterable[T | Flush],
    *,
    items_max: int = BUDGET.items,
    later_max: int = 0,
    size_max: float = inf,
    size_of: Callable[[T], int] | None = None,
) -> Iterator[list[T]]:
    """Split a stream into non-empty lists of at most `items_max` entries, in order.

    Those after the first may have `later_max`. An entry with which their sizes reach `size_max`
    ends a list, and so does a `FLUSH`. The stream is not read beyond the list that is being filled.
    """
    batch: list[T] = []
    size = 0
    for entry in entries:
        if not isinstance(entry, Flush):
            batch.append(entry)
            size += size_of(entry) if size_of else 0
            if len(batch) < items_max and size < size_max:
                continue
        if batch:
            yield batch
            batch, size, items_max = [], 0, max(items_max, later_max)
    if batch:
        yield batch


class Acknowledged:
    """Tracks which items of a stream, in order, were acknowledged and which were refused.

    A `with` block adds that to a `ServerError`, in exact ranges: a call that was sent ahead may
    succeed although the call before it was refused.
    """

    def __init__(self) -> None:
        self._end = 0
        # The start and length of each.
        self._ranges = [(0, 0)]

    def add(self, count: int) -> None:
        start, length = self._ranges[-1]
        if start + length == self._end:
            self._ranges[-1] = start, length + count
        elif count:
            self._ranges.append((self._end, count))
        self._end += count

    def skip(self, count: int) -> None:
        self._end += count

    def __enter__(self) -> "Acknowledged":
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, ServerError):
            (_, error.acknowledged), *after = self._ranges
            error.acknowledged_after = tuple(after)


def acknowledged(progress: ProgressListener, batches: Iterable[Batch]) -> Iterator[Batch]:
    """Pass batches on, report their progress, and tell a `ServerError` how many items they have."""
    with Acknowledged() as total:
        for batch in batches:
            total.add(len(batch))
            progress.advance(len(batch))
            yield batch


@contextmanager
def in_doubt(
    outstanding: Callable[[], int], shown_by: str = "rwq show ID says what became of an item"
) -> Iterator[None]:
    """Add to the error of a lost reply how many items have none, and what shows them."""
    try:
        yield
    except ServerError as error:
        # If it is set, the code inside the block has set it, and knows more.
        if error.in_doubt and not error.doubtful:
            error.doubtful = outstanding()
            error.hint = shown_by
        raise
