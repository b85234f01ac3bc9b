"""What `rwq work` and `rwq clean --every` have in common as services."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from rwq_cli.cli.settings import Settings
from rwq_cli.core.queue import WorkQueue
from rwq_cli.service.supervision import Supervision

if TYPE_CHECKING:
    from rwq_cli.core.server.connection import Connection
    from rwq_cli.output.exposition import Metric
    from rwq_cli.views.monitoring import Scraper


class Service:
    """What supervisors see of a process, and the history that it writes of its queues.

    Args:
        queues: Returns the queues that it serves now.
        metrics: Returns the metrics of what it does itself.
        silence_s: As for `Supervision`.
    """

    def __init__(
        self,
        settings: Settings,
        connection: "Connection",
        queues: Callable[[], Sequence[WorkQueue]],
        metrics: "Callable[[], Iterable[Metric]]",
        *,
        notify: bool,
        listen: tuple[str, int] | None,
        silence_s: float = 60.0,
    ) -> None:
        from rwq_cli.core.inspect.history import HistoryWriter
        from rwq_cli.core.inspect.rates import ItemTotals

        self._environment, self._connection = settings.environment, connection
        self._queues, self._own_metrics = queues, metrics
        self._totals = ItemTotals(connection)
        self.history = HistoryWriter(self._totals.done)
        self.supervision = Supervision(
            notifies=notify,
            address=listen,
            variables=settings.environment.variables,
            metrics=self._metrics,
            refusal=lambda: self._scraper.refusal(),
            silence_s=silence_s,
        )

    def begin(self, *, counts_items: bool) -> None:
        """Say where it listens, and count items from now on, in the block of its supervision."""
        if self.supervision.url is not None:
            self._environment.note(f"rwq: listening on {self.supervision.url}")
        if counts_items:
            self.supervision.start(
                lambda over: self._totals.count(lambda: [q.name for q in self._queues()], over)
            )

    @cached_property
    def _scraper(self) -> "Scraper":
        # Its imports take as long as a short command.
        from rwq_cli.views.monitoring import Scraper

        return Scraper(self._connection)

    def _metrics(self) -> "list[Metric]":
        from rwq_cli.views.monitoring import item_metrics

        counts = self._scraper.metrics(self._queues())
        return [*counts, *self._own_metrics(), *item_metrics(self._totals)]
