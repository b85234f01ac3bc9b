"""What a worker does beside its commands: light cleans, and counting what waits."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import inf
from threading import Event
from time import monotonic

from rwq_cli.core.errors import ServerError
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.repair.actions import Repair
from rwq_cli.service.rounds import jittered


def keep_house(
    queues: Sequence[WorkQueue],
    ended: Event,
    *,
    clean_s: float | None,
    count_s: float | None,
    cleaned: Callable[[bytes, Mapping[Repair, int]], object],
    counted: Callable[[int], object],
) -> None:
    """Clean and count every so many seconds, until `ended`; a server error is tried again then."""
    clean_at_s = monotonic() if clean_s is not None else inf
    count_at_s = monotonic() if count_s is not None else inf
    while not ended.wait(max(0.0, min(clean_at_s, count_at_s) - monotonic())):
        if count_s is not None and monotonic() >= count_at_s:
            with suppress(ServerError):
                counted(sum(queue.lengths().waiting for queue in queues))
            count_at_s = monotonic() + count_s
        if clean_s is not None and monotonic() >= clean_at_s:
            for queue in queues:
                with suppress(ServerError):
                    if counts := Counter(action.action for action in queue.light_clean()):
                        cleaned(queue.name, counts)
            # Workers that were started together must not clean at the same time.
            clean_at_s = monotonic() + jittered(clean_s)
