"""The queues that a command looks at: several `-q`, patterns, or all of the server."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from rwq_cli.cli.connect import open_connection, open_queues, queue_handles
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument, WrongType
from rwq_cli.core.keys import is_glob
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output.escape import escaped

if TYPE_CHECKING:
    from rwq_cli.output.report import Batch, Records, Report

T = TypeVar("T")


@dataclass(eq=False, repr=False)
class OpenQueues:
    """The queues that a command looks at.

    Attributes:
        queues: The queues; none if no queue matches.
        is_one: Whether the user named one queue: the output is then that of one.
        are_found: Whether they were found by a pattern: others may have keys with such names.
    """

    queues: list[WorkQueue]
    is_one: bool
    are_found: bool
    _left_out: set[bytes] = field(default_factory=set)

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

    def reports(self, make: "Callable[[WorkQueue], Records[Any] | Batch[Any]]") -> "Report":
        """The report of the one queue, or those of all."""
        if self.is_one:
            return make(self.queues[0])
        from rwq_cli.output.report import Several

        return Several((escaped(queue.name), make(queue)) for queue in self.queues)

    def reader(
        self, settings: Settings, read: Callable[[WorkQueue], Iterable[T]], queue: WorkQueue
    ) -> Iterator[T]:
        """What is read from one queue; see `readers`."""
        if queue.name in self._left_out:
            return
        try:
            yield from read(queue)
        except WrongType as error:
            if not self.are_found:
                raise
            self._left_out.add(queue.name)
            settings.environment.error(f"left out: {error.message}")


def open_matching_queues(
    settings: Settings, *, all_queues: bool, changes: bool = False
) -> OpenQueues:
    """The queues that the settings name, or that match their patterns; see `open_connection`.

    Args:
        settings: The settings.
        all_queues: Whether `--all-queues` was given.
        changes: Whether the command changes queues: what was found by a pattern and has no item is
            then left out, because it may belong to another program.

    Raises:
        InvalidArgument: No queue is named.
    """
    words = list(dict.fromkeys(settings.queues))
    if all_queues and settings.given.get("queue"):
        raise InvalidArgument("--all-queues and -q cannot be used together", "use one of them")
    if not all_queues and not any(map(is_glob, words)):
        queues = open_queues(settings)
        return OpenQueues(queues, is_one=len(queues) == 1, are_found=False)
    from rwq_cli.core.inspect.queues import matching_queues, queue_names

    connection = open_connection(settings)
    found = {b"*": queue_names(connection)} if all_queues else matching_queues(connection, words)
    for word, names in found.items():
        if not names:
            settings.environment.note(
                "rwq: no queues on this server"
                if all_queues
                else f"rwq: {escaped(word)}: no queue matches, or all are empty; rwq queues lists "
                "those that are not"
            )
    names = list(dict.fromkeys(chain.from_iterable(found.values())))
    are_found = names != words
    origin = "--all-queues" if all_queues else settings.queue_origin
    queues = queue_handles(settings, connection, names, origin)
    if changes:
        queues = [each for each in queues if each.name in words or _is_queue(settings, each)]
    return OpenQueues(queues, is_one=len(names) == 1 and not are_found, are_found=are_found)


def _is_queue(settings: Settings, queue: WorkQueue) -> bool:
    """Whether keys with a queue's names are one's; a note if not."""
    from rwq_cli.core.inspect.queues import has_items

    if has_items(queue):
        return True
    settings.environment.note(
        f"left out: {escaped(queue.name)} has no items, and may belong to another program; "
        "-q with its name includes it"
    )
    return False
