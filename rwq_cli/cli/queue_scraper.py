"""The counts of queues for `/metrics`, read at each scrape."""

from collections.abc import Sequence

from rwq_cli.core.errors import ConnectionLost, ServerError, Unreachable
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.thresholds import Check, check
from rwq_cli.core.server.connection import Connection
from rwq_cli.output.exposition import Metric
from rwq_cli.views.monitoring import queue_metrics

# Prometheus waits for 10 s by default.
_REPLY_TIMEOUT_S = 4.0


class QueueScraper:
    """Reads the counts of queues on a connection of its own, so that another thread may use it.

    Args:
        connection: The main thread's connection to the server.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection.for_other_thread(reply_timeout_s=_REPLY_TIMEOUT_S)

    def read(self, queues: Sequence[Queue]) -> list[Metric]:
        """The metrics of `rwq check --format prometheus`; `queues` may be the main thread's."""
        names = [queue.name for queue in queues]
        checks: list[Check] = []
        for name in names:
            try:
                checks.append(check(Queue(self._connection, name), {}))
            except (Unreachable, ConnectionLost):
                break
            except ServerError:
                continue
        return queue_metrics(names, checks)
