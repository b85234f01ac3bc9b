"""Says on stderr, once, that sizes are not read because reading an item resets its idle time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from rwq_cli.cli.settings import Settings
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.options import OutputFormat

T = TypeVar("T")


def noting_unread_sizes(
    settings: Settings, queues: Sequence[WorkQueue], items: Iterable[T], *, data: bool
) -> Iterator[T]:
    """Yield items; note before the first one if their sizes and data are not read.

    Args:
        settings: The settings.
        queues: Their queues, on one connection.
        items: The items.
        data: Whether the data is read anyway.
    """
    if data or not settings.shows_sizes:
        return iter(items)
    consequence = "sizes and data are not read; --data reads them, which resets idle times"
    return _noting(settings, queues, items, consequence, lambda _item: True)


def noting_unsampled_sizes(
    settings: Settings,
    queues: Sequence[WorkQueue],
    counts: Iterable[T],
    has_sizes: Callable[[T], bool],
) -> Iterator[T]:
    """Yield the counts of queues; note before the first one of which no sizes are sampled.

    Args:
        settings: The settings.
        queues: The queues, on one connection.
        counts: Their counts.
        has_sizes: Whether there are sizes to sample.
    """
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
