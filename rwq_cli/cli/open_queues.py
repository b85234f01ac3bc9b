"""The queues that a command looks at: several `-q`, patterns, or all; and notes about them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from rwq_cli.cli.connect import open_connection, open_queues, queue_handles
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument, ServerError, WrongType
from rwq_cli.core.keys import is_glob
from rwq_cli.output.escape import escaped, escaped_text
from rwq_cli.output.options import OutputFormat

if TYPE_CHECKING:
    from rwq_cli.core.queue import WorkQueue

T = TypeVar("T")

# How long the result of a scan of all keys is used.
_FIND_EVERY_S = 30.0


def remembered(find: Callable[[], T]) -> Callable[[], T]:
    """A function that finds something, and finds it again only after `_FIND_EVERY_S`."""
    known: list[T] = []
    found_s = 0.0

    def find_or_remember() -> T:
        nonlocal found_s
        now_s = monotonic()
        if not known or now_s - found_s >= _FIND_EVERY_S:
            known[:], found_s = [find()], now_s
        return known[0]

    return find_or_remember


class OpenQueues:
    """The queues that a command looks at; none if no queue matches.

    `is_one` is true if the user named one: the output is then that of one. `left_out` are those
    that a pattern found, but have a structure of the wrong type.
    """

    def __init__(self, queues: "list[WorkQueue]", *, is_one: bool, are_found: bool) -> None:
        self.queues = queues
        self.is_one = is_one
        # A pattern finds keys of other programs, too.
        self._are_found = are_found
        self.left_out: set[bytes] = set()

    @property
    def label(self) -> str:
        """The queue's name, or how many queues there are."""
        if len(self.queues) == 1:
            return escaped(self.queues[0].name)
        return f"{len(self.queues):,} queues"

    def each(self, settings: Settings, read: "Callable[[WorkQueue], Iterable[T]]") -> Iterator[T]:
        """What is read from each queue, one after the other."""
        return chain.from_iterable(self.readers(settings, read))

    def readers(
        self, settings: Settings, read: "Callable[[WorkQueue], Iterable[T]]"
    ) -> list[Iterator[T]]:
        """What is read from each queue; a queue that a pattern found may be left out."""
        return [self.reader(settings, read, queue) for queue in self.queues]

    def reader(
        self, settings: Settings, read: "Callable[[WorkQueue], Iterable[T]]", queue: "WorkQueue"
    ) -> Iterator[T]:
        """What is read from one queue; see `readers`."""
        if queue.name in self.left_out:
            return
        try:
            yield from read(queue)
        except WrongType as error:
            if not self._are_found:
                raise
            self.left_out.add(queue.name)
            settings.environment.error(f"skipped: {escaped_text(error.message)}", once=True)


class QueueFinder:
    """Finds the queues that the settings name, or that match their patterns, any number of times.

    For patterns, all keys are scanned; see `remembered`. If the command changes queues, what was
    found by a pattern and has no item is left out, because it may belong to another program.

    Attributes:
        connection: The connection of all queues.
        label: The names and patterns of the queues.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        all_queues: bool,
        changes: bool = False,
        any_type: bool = False,
    ) -> None:
        self._settings = settings
        self._changes = changes
        self._any_type = any_type
        self._is_all = all_queues
        self._words = list(dict.fromkeys(settings.queues))
        if all_queues and settings.given.get("queue"):
            raise InvalidArgument.both("--all-queues", "-q")
        has_patterns = all_queues or any(map(is_glob, self._words))
        self._named = [] if has_patterns else open_queues(settings)
        self.connection = self._named[0].connection if self._named else open_connection(settings)
        self.label = "all queues" if all_queues else ", ".join(map(escaped, self._words))
        self._found = remembered(self._find)

    def find(self) -> OpenQueues:
        """The queues; what is left out of them is found again each time."""
        if self._named:
            return OpenQueues(self._named, is_one=len(self._named) == 1, are_found=False)
        queues, are_found = self._found()
        is_one = len(queues) == 1 and not are_found
        return OpenQueues(queues, is_one=is_one, are_found=are_found)

    def _find(self) -> "tuple[list[WorkQueue], bool]":
        """The queues, and False if what looked like patterns were names."""
        from rwq_cli.core.inspect.queues import matching_queues, queue_names

        note = self._settings.environment.note
        if self._is_all:
            found = {b"*": queue_names(self.connection, any_type=self._any_type)}
        else:
            found = matching_queues(self.connection, self._words, any_type=self._any_type)
        for word, matching in found.items():
            if self._is_all and not matching:
                note("rwq: no queues on this server", once=True)
            elif not matching:
                note(
                    f"rwq: {escaped(word)}: no queue matches, or all are empty; rwq queues lists "
                    "those that are not",
                    once=True,
                )
        names = list(dict.fromkeys(chain.from_iterable(found.values())))
        origin = "--all-queues" if self._is_all else self._settings.queue_origin
        queues = queue_handles(self._settings, self.connection, names, origin)
        if self._changes:
            queues = [
                each for each in queues if each.name in self._words or self._has_items_or_note(each)
            ]
        return queues, self._is_all or names != self._words

    def _has_items_or_note(self, queue: "WorkQueue") -> bool:
        """True if a queue that a pattern found has items; if not, note that it is skipped."""
        from rwq_cli.core.inspect.queues import has_items

        if has_items(queue):
            return True
        self._settings.environment.note(
            f"skipped: {escaped(queue.name)} has no items, and may belong to another program; "
            "-q with its name includes it",
            once=True,
        )
        return False


def open_matching_queues(
    settings: Settings, *, all_queues: bool, changes: bool = False, any_type: bool = False
) -> OpenQueues:
    """The queues that the settings name, or that match their patterns; see `QueueFinder`."""
    finder = QueueFinder(settings, all_queues=all_queues, changes=changes, any_type=any_type)
    return finder.find()


def warn_if_missing(
    settings: Settings,
    queue: "WorkQueue",
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


def warn_missing(settings: Settings, queue: "WorkQueue") -> None:
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
    settings: Settings, queues: "Sequence[WorkQueue]", items: Iterable[T], *, data: bool
) -> Iterator[T]:
    """Yield items; note before the first one if their sizes and data are not read."""
    if data or not settings.shows_sizes:
        return iter(items)
    consequence = "sizes and data are not read; --data reads them, which resets idle times"
    return warn_of_idle_reset(settings, queues, items, consequence)


def warn_of_idle_reset(
    settings: Settings,
    queues: "Sequence[WorkQueue]",
    records: Iterable[T],
    consequence: str,
    applies: Callable[[T], bool] = lambda _record: True,
) -> Iterator[T]:
    """Yield records; note before the first one that it applies to what looking at it would do."""
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
