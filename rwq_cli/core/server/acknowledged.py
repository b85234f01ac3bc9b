"""Tracking which items of a stream the server has acknowledged."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from rwq_cli.core.errors import ServerError


class Acknowledged:
    """Tracks the items of a stream in order; a `with` block adds the result to a `ServerError`.

    A call that was sent ahead may succeed although the call before it was refused, so the error
    gets exact ranges.
    """

    def __init__(self) -> None:
        self._end = 0
        # The start and length of each range; the last one is open until an item is refused.
        self._ranges: list[list[int]] = []
        self._is_open = False

    def add(self, count: int) -> None:
        """Record that the next `count` items were acknowledged."""
        if self._is_open:
            self._ranges[-1][1] += count
        elif count:
            self._ranges.append([self._end, count])
            self._is_open = True
        self._end += count

    def skip(self, count: int) -> None:
        """Record that the next `count` items were refused."""
        self._end += count
        self._is_open = self._is_open and not count

    def __enter__(self) -> "Acknowledged":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, ServerError):
            ranges = [(first, count) for first, count in self._ranges]
            has_first = bool(ranges) and ranges[0][0] == 0
            error.acknowledged = ranges[0][1] if has_first else 0
            error.acknowledged_after = tuple(ranges[1:] if has_first else ranges)


@contextmanager
def in_doubt(outstanding: Callable[[], int], shown_by: str) -> Iterator[None]:
    """Add to the error of a lost reply how many items are in doubt, and what shows them.

    Args:
        outstanding: Counts the items of the calls that have no reply.
        shown_by: The hint: which command says what became of them.
    """
    try:
        yield
    except ServerError as error:
        # If it is set, the code inside the block has set it, and knows more.
        if error.in_doubt and not error.doubtful:
            error.doubtful = outstanding()
            error.hint = shown_by
        raise
