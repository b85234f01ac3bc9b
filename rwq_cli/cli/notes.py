"""Notes on stderr about what a command found: a queue that is missing, sizes that are not read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import ServerError
from rwq_cli.core.keys import is_glob
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.escape import escaped
from rwq_cli.output.options import OutputFormat

T = TypeVar("T")


def warn_if_missing(
    settings: Settings,
    queue: WorkQueue,
    results: Iterable[T],
    is_nothing: Callable[[T], bool] | None = None,
) -> Iterator[T]:
    """Yield what a command found in a queue; if that is nothing, note if there is no such queue."""
    # Without results, a listing has found nothing; a lookup had no items to look for.
    found_nothing = is_nothing is None
    has_found = False
    for result in results:
        found_nothing = is_nothing is not None and is_nothing(result)
        has_found = has_found or not found_nothing
        yield result
    if found_nothing and not has_found:
        warn_missing(settings, queue)


def warn_missing(settings: Settings, queue: WorkQueue) -> None:
    """Note on stderr if no key of the queue exists."""
    # The command itself succeeded without this.
    with suppress(ServerError):
        if not queue.exists():
            patterns = "; this command takes no patterns" if is_glob(queue.name) else ""
            settings.environment.note(
                f"rwq: {escaped(queue.name)}: there is no such queue, or it is empty; rwq queues "
                f"lists the queues{patterns}",
                once=True,
            )


def warn_sizes_skipped(
    settings: Settings, queues: Sequence[WorkQueue], items: Iterable[T], *, data: bool
) -> Iterator[T]:
    """Yield items; note before the first one if their sizes and data are not read."""
    if data or not settings.shows_sizes:
        return iter(items)
    consequence = "sizes and data are not read; --data reads them, which resets idle times"
    return _noting(settings, queues, items, consequence, lambda _item: True)


def warn_sizes_not_sampled(
    settings: Settings,
    queues: Sequence[WorkQueue],
    counts: Iterable[T],
    has_sizes: Callable[[T], bool],
) -> Iterator[T]:
    """Yield the counts of queues; note before the first one of which no sizes are sampled."""
    return _noting(settings, queues, counts, "payload sizes are not sampled", has_sizes)


def _noting(
    settings: Settings,
    queues: Sequence[WorkQueue],
    records: Iterable[T],
    consequence: str,
    applies: Callable[[T], bool],
) -> Iterator[T]:
    is_said = settings.output is OutputFormat.IDS
    for record in records:
        if not is_said and applies(record):
            is_said = True
            if not queues[0].connection.set_no_touch():
                settings.environment.note(
                    f"note: on this server, reading an item resets its idle time; {consequence}",
                    once=True,
                )
        yield record
