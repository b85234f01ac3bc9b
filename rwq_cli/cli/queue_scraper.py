"""The counts of queues for `/metrics`, read at each scrape."""

from collections.abc import Callable, Sequence

from rwq_cli.core.errors import ConnectionLost, ServerError, Unreachable
from rwq_cli.core.handle import Queue
from rwq_cli.core.inspect.thresholds import Check, check
from rwq_cli.core.server.connection import Connection
from rwq_cli.output.exposition import Metric
from rwq_cli.views.monitoring import queue_metrics

# Prometheus waits for 10 s by default.
_REPLY_TIMEOUT_S = 4.0


def queue_scraper(connection: Connection) -> Callable[[Sequence[Queue]], list[Metric]]:
    """A function that returns the metrics of `rwq check --format prometheus`.

    It has a connection of its own, so that another thread may call it with the queues of the main
    thread.
    """
    own = connection.for_other_thread(reply_timeout_s=_REPLY_TIMEOUT_S)

    def read(queues: Sequence[Queue]) -> list[Metric]:
        names = [queue.name for queue in queues]
        checks: list[Check] = []
        for name in names:
            try:
                checks.append(check(Queue(own, name), {}))
            except (Unreachable, ConnectionLost):
                break
            except ServerError:
                continue
        return queue_metrics(names, checks)

    return read
