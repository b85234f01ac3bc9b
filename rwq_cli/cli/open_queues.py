"""The queues that a command looks at: several `-q`, patterns, or all; and notes about them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING, Self, TypeVar

from rwq_cli.cli.connect import open_connection, open_queues, queue_handles
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument, ServerError, WrongType
from rwq_cli.core.keys import is_glob
from rwq_cli.output.escape import escaped, escaped_text

if TYPE_CHECKING:
    from rwq_cli.core.inspect.selection import Selection
    from rwq_cli.core.queue import WorkQueue

T = TypeVar("T")

# How long the result of a scan of all keys is used.
_FIND_EVERY_S = 30.0


def remembered(find: Callable[[], T]) -> Callable[[], T]:
    """A function that finds something, and finds it again only after `_FIND_EVERY_S`."""
    known: list[tuple[float, T]] = []

    def find_or_remember() -> T:
        if not known or monotonic() - known[0][0] >= _FIND_EVERY_S:
            known[:] = [(monotonic(), find())]
        return known[0][1]

    return find_or_remember


class OpenQueues:
    """The queues that the settings name or their patterns match, found any number of times."""

    # `is_one` is true if the user named one: the output is then that of one. `left_out` are those
    # that a pattern found, but have a structure of the wrong type. If the command changes queues,
    # what was found by a pattern and has no item is left out: it may belong to another program.
    def __init__(
        self, settings: Settings, *, all_queues: bool, changes: bool = False, any_type: bool = False
    ) -> None:
        self._settings, self._changes, self._any_type = settings, changes, any_type
        self._is_all = all_queues
        self._words = list(dict.fromkeys(settings.queues))
        if all_queues and settings.given.get("queue"):
            raise InvalidArgument.both("--all-queues", "-q")
        has_patterns = all_queues or any(map(is_glob, self._words))
        self._named = [] if has_patterns else open_queues(settings)
        self.connection = self._named[0].connection if self._named else open_connection(settings)
        self.names = "all queues" if all_queues else ", ".join(map(escaped, self._words))
        self._found = remembered(self._find)

    def find(self) -> Self:
        """Find the queues; for patterns, all keys are scanned: see `remembered`."""
        # A pattern finds keys of other programs, too.
        self.queues, self._are_found = (self._named, False) if self._named else self._found()
        self.is_one = len(self.queues) == 1 and not self._are_found
        self.left_out: set[bytes] = set()
        return self

    @property
    def label(self) -> str:
        """The queue's name, or how many queues there are."""
        is_one = len(self.queues) == 1
        return escaped(self.queues[0].name) if is_one else f"{len(self.queues):,} queues"

    def each(self, read: "Callable[[WorkQueue], Iterable[T]]") -> Iterator[T]:
        return chain.from_iterable(self.reader(read, queue) for queue in self.queues)

    def reader(self, read: "Callable[[WorkQueue], Iterable[T]]", queue: "WorkQueue") -> Iterator[T]:
        """What is read from one queue; one that a pattern found may be left out."""
        if queue.name in self.left_out:
            return
        try:
            yield from read(queue)
        except WrongType as error:
            if not self._are_found:
                raise
            self.left_out.add(queue.name)
            skipped = f"skipped: {escaped_text(error.message)}"
            self._settings.environment.error(skipped, once=True)

    def _find(self) -> "tuple[list[WorkQueue], bool]":
        """The queues, and False if what looked like patterns were names."""
        from rwq_cli.core.inspect.queues import has_items, matching_queues, queue_names

        note = partial(self._settings.environment.note, once=True)
        none = "rwq: {}: no queue matches, or all are empty; rwq queues lists those that are not"
        if self._is_all:
            none = "rwq: no queues on this server"
            found = {b"*": queue_names(self.connection, any_type=self._any_type)}
        else:
            found = matching_queues(self.connection, self._words, any_type=self._any_type)
        for word in (word for word, matching in found.items() if not matching):
            note(none.format(escaped(word)))
        names = list(dict.fromkeys(chain.from_iterable(found.values())))
        origin = "--all-queues" if self._is_all else self._settings.queue_origin
        kept = []
        for queue in queue_handles(self._settings, self.connection, names, origin):
            if not self._changes or queue.name in self._words or has_items(queue):
                kept.append(queue)
            else:
                note(
                    f"skipped: {escaped(queue.name)} has no items, and may belong to another "
                    "program; -q with its name includes it"
                )
        return kept, self._is_all or names != self._words


def warn_if_missing(
    settings: Settings,
    queue: "WorkQueue",
    results: Iterable[T],
    is_nothing: Callable[[T], bool] = lambda _result: False,
) -> Iterator[T]:
    """Yield what a command found in a queue; if that is nothing, note if there is no such queue."""
    has_found = False
    for result in results:
        has_found = has_found or not is_nothing(result)
        yield result
    if not has_found:
        warn_missing(settings, queue)


def warn_missing(settings: Settings, queue: "WorkQueue") -> None:
    from rwq_cli.core.inspect.queues import exists

    # The command itself succeeded without this.
    with suppress(ServerError):
        if not exists(queue):
            patterns = "; this command takes no patterns" if is_glob(queue.name) else ""
            settings.environment.note(
                f"rwq: {escaped(queue.name)}: there is no such queue, or it is empty; rwq queues "
                f"lists the queues{patterns}",
                once=True,
            )


def note_idle_reset(settings: Settings, queue: "WorkQueue", consequence: str) -> None:
    if not queue.connection.set_no_touch():
        reset = "note: on this server, reading an item resets its idle time"
        settings.environment.note(f"{reset}; {consequence}", once=True)


def warn_of_reading(
    settings: Settings, queues: "Sequence[WorkQueue]", selection: "Selection"
) -> None:
    """Print a note if `--match` or `--where` resets the idle times of items on this server."""
    if selection.needs_data and queues:
        name = "--where" if selection.match is None else "--match"
        note_idle_reset(settings, queues[0], f"{name} reads the data")
