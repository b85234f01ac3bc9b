"""Which part of a stream the server has acknowledged, for the error that ends it."""

from types import TracebackType

from rwq_cli.core.errors import ServerError


class Acknowledged:
    """Counts the items of a stream in order; as a `with` block, adds the counts to an error.

    A call that was sent ahead may be carried out although the one before it was refused. The error
    then has the exact ranges.
    """

    def __init__(self) -> None:
        self._end = 0
        self._ranges: list[tuple[int, int]] = []

    def add(self, count: int) -> None:
        """The next `count` items were acknowledged."""
        if count and self._ranges and sum(self._ranges[-1]) == self._end:
            first, before = self._ranges.pop()
            self._ranges.append((first, before + count))
        elif count:
            self._ranges.append((self._end, count))
        self._end += count

    def skip(self, count: int) -> None:
        """The next `count` items were refused."""
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
