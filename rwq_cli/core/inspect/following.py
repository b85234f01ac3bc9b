"""Following the keys of queues, wherever they are: on one server, or on the nodes of a cluster."""

from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import NamedTuple, TypeVar

from rwq_cli.core.errors import ConnectionLost, ServerError, text_of
from rwq_cli.core.handle import Queue
from rwq_cli.core.server.tracking import Tracker, TrackingRefused, prefixes_of

Result = TypeVar("Result")


class Followed(NamedTuple):
    """Queues on one server.

    Attributes:
        queues: The queues.
        tracker: What reads the changes of their keys; None where the server tracks none.
        is_fresh: Whether changes before now are unknown.
    """

    queues: Sequence[Queue]
    tracker: Tracker | None
    is_fresh: bool


class Follower:
    """Follows the keys of queues that have one of these `infixes`, such as `:item:`.

    A connection that the server has ended is replaced at the next look, and `on_wait` of the
    queue's connection is told for how long nothing was seen. Where no keys can be followed, it is
    told why, after what this means: `without`.
    """

    def __init__(self, infixes: Iterable[bytes], without: str) -> None:
        self._infixes, self._without = tuple(infixes), without
        self._trackers: dict[str, Tracker] = {}
        self._refused: set[str] = set()
        # By queue, before when all its changes were seen.
        self._seen_s: dict[bytes, float] = {}

    def by_server(self, queues: Iterable[Queue]) -> list[list[Queue]]:
        groups: dict[str, list[Queue]] = {}
        for queue in queues:
            # The node that has its slot now; behind Sentinel, the primary.
            queue.connection.client()
            place = queue.connection.name if queue.is_in_one_slot else ""
            groups.setdefault(place, []).append(queue)
        for name in self._trackers.keys() - groups.keys():
            self._trackers.pop(name).close()
        return list(groups.values())

    def _follow(self, queues: Sequence[Queue]) -> Followed:
        """Follow queues that are on one server."""
        connection = queues[0].connection
        # Behind Sentinel, its name is known once it is connected.
        name = connection.name
        if name in self._refused or not queues[0].is_in_one_slot:
            return Followed(queues, None, is_fresh=True)
        wanted = prefixes_of(queue.name + infix for queue in queues for infix in self._infixes)
        tracker, is_fresh = self._trackers.pop(name, None), False
        if tracker is not None and not (tracker.is_open and tracker.can_track(wanted)):
            tracker.close()
            tracker = None
        try:
            if tracker is None:
                tracker, is_fresh = Tracker(connection, wanted), True
                self._note_blind(queues)
        except TrackingRefused as error:
            self._refused.add(name)
            connection.tell(f"{self._without}: {error.message}")
            return Followed(queues, None, is_fresh=True)
        self._trackers[connection.name] = tracker
        self._seen_s.update((queue.name, tracker.certain_s) for queue in queues)
        return Followed(queues, tracker, is_fresh)

    def _note_blind(self, queues: Sequence[Queue]) -> None:
        seen_s = [self._seen_s[queue.name] for queue in queues if queue.name in self._seen_s]
        if seen_s:
            blind_s = monotonic() - min(seen_s)
            names = text_of(queues[0].name) if len(queues) == 1 else f"{len(queues)} queues"
            queues[0].connection.on_wait(
                f"rwq: {names}: the connection was lost; for {blind_s:.1f} s no changes were seen"
            )

    def reading(self, queues: Sequence[Queue], read: Callable[[Followed], Result]) -> Result:
        """What `read` returns of queues on one server; after a lost connection, on a new one."""
        try:
            return self._reading(queues, read)
        except ConnectionLost:
            return self._reading(queues, read)

    def _reading(self, queues: Sequence[Queue], read: Callable[[Followed], Result]) -> Result:
        followed = self._follow(queues)
        try:
            return read(followed)
        except ServerError:
            if followed.tracker is not None:
                followed.tracker.close()
            # On a cluster, they may be on another node by now.
            queues[0].connection.close()
            raise

    def close(self) -> None:
        for tracker in self._trackers.values():
            tracker.close()
        self._trackers.clear()
