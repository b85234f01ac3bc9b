"""Tracking which items of a stream the server has acknowledged."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rwq_cli.core.errors import ServerError


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


@contextmanager
def in_doubt(outstanding: Callable[[], int], shown_by: str) -> Iterator[None]:
    """Add to the error of a lost reply how many items are in doubt, and what shows them.

    `outstanding` counts the items of the calls that have no reply; `shown_by` is the hint.
    """
    try:
        yield
    except ServerError as error:
        # If it is set, the code inside the block has set it, and knows more.
        if error.in_doubt and not error.doubtful:
            error.doubtful = outstanding()
            error.hint = shown_by
        raise
