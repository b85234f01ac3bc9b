"""Tracking which items of a stream the server has acknowledged."""

from types import TracebackType

from rwq_cli.core.errors import ServerError


class Acknowledged:
    """Tracks the items of a stream in order; a `with` block adds the result to a `ServerError`.

    A call that was sent ahead may succeed although the call before it was refused, so the error
    gets exact ranges.
    """

    def __init__(self) -> None:
        self._end = 0
        self._ranges: list[tuple[int, int]] = []

    def add(self, count: int) -> None:
        """Record that the next `count` items were acknowledged."""
        if count and self._ranges and sum(self._ranges[-1]) == self._end:
            first, before = self._ranges.pop()
            self._ranges.append((first, before + count))
        elif count:
            self._ranges.append((self._end, count))
        self._end += count

    def skip(self, count: int) -> None:
        """Record that the next `count` items were refused."""
        self._end += count

    def __enter__(self) -> "Acknowledged":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, ServerError):
            has_first = self._ranges[:1] and self._ranges[0][0] == 0
            error.acknowledged = self._ranges[0][1] if has_first else 0
            error.acknowledged_after = tuple(self._ranges[1:] if has_first else self._ranges)
