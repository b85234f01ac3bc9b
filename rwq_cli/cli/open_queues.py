"""The queues that a command looks at: several `-q`, patterns, or all of the server."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from time import monotonic
from typing import TypeVar

from rwq_cli.cli.connect import open_connection, open_queues, queue_handles
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument, WrongType
from rwq_cli.core.keys import is_glob
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.escape import escaped, escaped_text

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


@dataclass(eq=False, repr=False)
class OpenQueues:
    """The queues that a command looks at.

    Attributes:
        queues: The queues; none if no queue matches.
        is_one: True if the user named one queue: the output is then that of one.
        are_found: True if they were found by a pattern: others may have keys with such names.
        left_out: Those that were found, but have a structure of the wrong type.
    """

    queues: list[WorkQueue]
    is_one: bool
    are_found: bool
    left_out: set[bytes] = field(default_factory=set)

    @property
    def label(self) -> str:
        """The queue's name, or how many queues there are."""
        if len(self.queues) == 1:
            return escaped(self.queues[0].name)
        return f"{len(self.queues):,} queues"

    def each(self, settings: Settings, read: Callable[[WorkQueue], Iterable[T]]) -> Iterator[T]:
        """What is read from each queue, one after the other."""
        return chain.from_iterable(self.readers(settings, read))

    def readers(
        self, settings: Settings, read: Callable[[WorkQueue], Iterable[T]]
    ) -> list[Iterator[T]]:
        """What is read from each queue; a queue that a pattern found may be left out."""
        return [self.reader(settings, read, queue) for queue in self.queues]

    def reader(
        self, settings: Settings, read: Callable[[WorkQueue], Iterable[T]], queue: WorkQueue
    ) -> Iterator[T]:
        """What is read from one queue; see `readers`."""
        if queue.name in self.left_out:
            return
        try:
            yield from read(queue)
        except WrongType as error:
            if not self.are_found:
                raise
            self.left_out.add(queue.name)
            settings.environment.error(f"skipped: {escaped_text(error.message)}", once=True)


class QueueFinder:
    """Finds the queues that the settings name, or that match their patterns, any number of times.

    For patterns, all keys are scanned; see `remembered`.

    Args:
        settings: The settings; see `open_connection`.
        all_queues: True if `--all-queues` was given.
        changes: True if the command changes queues: what was found by a pattern and has no item is
            then left out, because it may belong to another program.
        any_type: See `queue_names`.

    Attributes:
        connection: The connection of all queues.
        label: The names and patterns of the queues.

    Raises:
        InvalidArgument: No queue is named.
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
        self._all_queues = all_queues
        self._changes = changes
        self._any_type = any_type
        self._words = list(dict.fromkeys(settings.queues))
        if all_queues and settings.given.get("queue"):
            raise InvalidArgument.both("--all-queues", "-q")
        has_patterns = all_queues or any(map(is_glob, self._words))
        self._named = [] if has_patterns else open_queues(settings)
        self.connection = self._named[0].connection if self._named else open_connection(settings)
        self.label = "all queues" if all_queues else ", ".join(map(escaped, self._words))
        self._found = remembered(self._find)

    def find(self) -> OpenQueues:
        """The queues."""
        if self._named:
            return OpenQueues(self._named, is_one=len(self._named) == 1, are_found=False)
        found = self._found()
        return OpenQueues(found.queues, found.is_one, found.are_found)

    def _find(self) -> OpenQueues:
        from rwq_cli.core.inspect.queues import matching_queues, queue_names

        words = self._words
        found = (
            {b"*": queue_names(self.connection, any_type=self._any_type)}
            if self._all_queues
            else matching_queues(self.connection, words, any_type=self._any_type)
        )
        for word, names in found.items():
            if not names:
                self._settings.environment.note(
                    "rwq: no queues on this server"
                    if self._all_queues
                    else f"rwq: {escaped(word)}: no queue matches, or all are empty; rwq queues "
                    "lists those that are not",
                    once=True,
                )
        names = list(dict.fromkeys(chain.from_iterable(found.values())))
        are_found = names != words
        origin = "--all-queues" if self._all_queues else self._settings.queue_origin
        queues = queue_handles(self._settings, self.connection, names, origin)
        if self._changes:
            queues = [
                each for each in queues if each.name in words or self._has_items_or_note(each)
            ]
        is_one = len(names) == 1 and not are_found
        return OpenQueues(queues, is_one, are_found)

    def _has_items_or_note(self, queue: WorkQueue) -> bool:
        """True if a queue that a pattern found has items; if not, note that it is skipped."""
        from rwq_cli.core.inspect.first_items import has_items

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
