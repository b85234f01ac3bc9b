"""What a long operation tells of itself while it goes on."""

from collections.abc import Callable


class ProgressListener:
    """Told of the stages of a long operation and of every step; this one makes nothing of it.

    A connection carries one, so that whoever wants to show progress can put another in its place.
    """

    def begin(self, what: str, total: int | Callable[[], int] | None = None) -> None:
        """A stage begins.

        Args:
            what: What is being done, such as `reading the data keys`.
            total: How many steps it will have, about, or what tells it: called only by who shows
                it, before the stage sends anything. None where that cannot be known.
        """

    def advance(self, count: int) -> None:
        """So many items or entries more are done."""

    def hide(self) -> None:
        """Something else is about to be shown; the work goes on after it."""
