"""Tracking which items of a stream the server has acknowledged."""

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import TypeVar

from rwq_cli.core.errors import ServerError
from rwq_cli.core.progress import ProgressListener

Batch = TypeVar("Batch", bound=Sized)
# The hint of a call on items whose reply was lost.
LOST_REPLY_HINT = "rwq show ID says what became of an item"


class Acknowledged:
    """Tracks the items of a stream in order; a `with` block adds the result to a `ServerError`.

    A call that was sent ahead may succeed although the call before it was refused, so the error
    gets exact ranges.
    """

    def __init__(self) -> None:
        self._end = 0
        # The start and length of each.
        self._ranges: list[tuple[int, int]] = []

    def add(self, count: int) -> None:
        """Record that the next `count` items were acknowledged."""
        first, before = self._ranges[-1] if self._ranges else (0, 0)
        if before and first + before == self._end:
            self._ranges[-1] = first, before + count
        elif count:
            self._ranges.append((self._end, count))
        self._end += count

    def skip(self, count: int) -> None:
        """Record that the next `count` items were refused."""
        self._end += count

    def __enter__(self) -> "Acknowledged":
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, ServerError):
            has_first = bool(self._ranges) and self._ranges[0][0] == 0
            error.acknowledged = self._ranges[0][1] if has_first else 0
            error.acknowledged_after = tuple(self._ranges[has_first:])


def acknowledged(progress: ProgressListener, batches: Iterable[Batch]) -> Iterator[Batch]:
    """Pass batches on, report their progress, and tell a `ServerError` how many items they have."""
    with Acknowledged() as known:
        for batch in batches:
            known.add(len(batch))
            progress.advance(len(batch))
            yield batch


@contextmanager
def in_doubt(outstanding: Callable[[], int], shown_by: str = LOST_REPLY_HINT) -> Iterator[None]:
    """Add to the error of a lost reply how many items have none, and what shows them."""
    try:
        yield
    except ServerError as error:
        # If it is set, the code inside the block has set it, and knows more.
        if error.in_doubt and not error.doubtful:
            error.doubtful = outstanding()
            error.hint = shown_by
        raise
