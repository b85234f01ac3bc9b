"""What a worker does beside its commands: light cleans, and counting what waits."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from threading import Event
from time import monotonic

from rwq_cli.core.errors import ServerError
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.escape import escaped
from rwq_cli.service.rounds import jittered
from rwq_cli.work.notes import Notes


def keep_house(
    queues: Sequence[WorkQueue],
    notes: Notes,
    clean_s: float | None,
    count_s: float | None,
    ended: Event,
) -> None:
    """Clean and count every so many seconds, until `ended`; a server error is tried again then."""
    clean_at_s, count_at_s = (inf if each is None else monotonic() for each in (clean_s, count_s))
    while not ended.wait(max(0.0, min(clean_at_s, count_at_s, monotonic() + 60) - monotonic())):
        if count_s is not None and monotonic() >= count_at_s:
            with suppress(ServerError):
                notes.progress.left = sum(queue.lengths().waiting for queue in queues)
            count_at_s = monotonic() + count_s
        if clean_s is not None and monotonic() >= clean_at_s:
            for queue in queues:
                with suppress(ServerError):
                    if counts := Counter(action.action for action in queue.light_clean()):
                        text = ", ".join(f"{repair} {n:,}" for repair, n in counts.items())
                        text = f"clean light: {text} ({escaped(queue.name)})"
                        notes.line(text, is_error=False)
            # Workers that were started together must not clean at the same time.
            clean_at_s = monotonic() + jittered(clean_s)
