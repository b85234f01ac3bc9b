"""Says on stderr if a queue does not exist: a mistyped name must not look like an empty queue."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeVar

from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import ServerError
from rwq_cli.core.keys import is_glob
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.escape import escaped

T = TypeVar("T")


def noting_absence(
    settings: Settings,
    queue: WorkQueue,
    results: Iterable[T],
    is_nothing: Callable[[T], bool] | None = None,
) -> Iterator[T]:
    """Yield what a command found in a queue; if that is nothing, note if there is no such queue.

    Args:
        settings: The settings.
        queue: The queue.
        results: What the command found.
        is_nothing: Whether a result stands for nothing; None if each is something.
    """
    # Without results, a listing has found nothing; a lookup had no items to look for.
    found_nothing = is_nothing is None
    has_found = False
    for result in results:
        found_nothing = is_nothing is not None and is_nothing(result)
        has_found = has_found or not found_nothing
        yield result
    if found_nothing and not has_found:
        note_if_absent(settings, queue)


def note_if_absent(settings: Settings, queue: WorkQueue) -> None:
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
