"""Progress reports of long operations."""

from collections.abc import Callable


class ProgressListener:
    """Receives the progress of long operations; this base class ignores it.

    Replace `Connection.progress` to show it.
    """

    def begin(self, what: str, total: int | Callable[[], int] | None = None) -> None:
        """A stage begins.

        Args:
            what: A description, such as `reading the data keys`.
            total: About how many steps it has; None if unknown. A function is called only if the
                progress is shown, and before the stage sends anything.
        """

    def advance(self, count: int) -> None:
        """`count` more items or entries are done."""

    def hide(self) -> None:
        """Make room for other output; the work continues after it."""
