"""What a worker tells a person while it works; results are its events."""

from collections.abc import Mapping

from rwq_cli.core.errors import ServerError
from rwq_cli.core.model import Repair
from rwq_cli.work.events import Event, Progress


class Listener:
    """Receives what a worker has to say; this base class ignores it.

    Attributes:
        tick_s: How often `tick` is called, seconds; None for never.
    """

    tick_s: float | None = None

    def failed(self, event: Event) -> None:
        """An item was retried, given up, put back after its last attempt, or lost."""

    def stopping(self, running: int) -> None:
        """No more items are taken; this many commands still run."""

    def ending(self, running: int) -> None:
        """SIGTERM was sent to this many commands."""

    def result_cut(self, item_id: bytes) -> None:
        """The command printed more than a result may hold."""

    def disconnected(self, error: ServerError) -> None:
        """The server does not answer; commands keep running."""

    def reconnected(self, seconds: float) -> None:
        """The server answers again, after this many seconds."""

    def cleaned(self, queue: bytes, counts: Mapping[Repair, int]) -> None:
        """A clean did something."""

    def status(self, progress: Progress) -> str:  # noqa: ARG002
        """What supervisors show."""
        return ""

    def tick(self, progress: Progress) -> None:
        """Time has passed."""

    def hide(self) -> None:
        """The terminal is about to belong to somebody else."""
