"""What a long operation reports while it runs."""

from collections.abc import Callable


class ProgressListener:
    """Hears of the stages of a long operation and of every step; this one ignores it all.

    A connection has one; whoever wants to show progress puts another in its place.
    """

    def begin(self, what: str, total: int | Callable[[], int] | None = None) -> None:
        """A stage begins.

        Args:
            what: What is being done, such as `reading the data keys`.
            total: About how many steps it has; None if unknown. A function is called only if the
                progress is shown, before the stage sends anything.
        """

    def advance(self, count: int) -> None:
        """`count` more items or entries are done."""

    def hide(self) -> None:
        """Something else is about to be shown; the work goes on after it."""
