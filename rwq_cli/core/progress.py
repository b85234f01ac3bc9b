"""What a long operation reports while it runs."""

from collections.abc import Callable


class ProgressListener:
    """Is called for each stage and step of a long operation; this base class does nothing.

    A connection has one; replace it to show progress.
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
