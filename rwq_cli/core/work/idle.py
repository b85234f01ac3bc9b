"""Finding queues that have work, and waiting for some."""

import os
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any

from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.keys import hash_tag
from rwq_cli.core.server.commands import Command

if TYPE_CHECKING:
    from rwq_cli.core.server.push_waiter import PushWaiter

# How often an idle worker looks, in case a delayed item falls due earlier than expected.
_LOOK_S = 1.0
# Up to this many queues, a push is noticed at once; each queue then takes a blocked link.
_WATCHED_QUEUES = 8


class WorkWaiter:
    """Finds out which queues may have an item to lease, without popping any.

    Args:
        queues: The queues in order of preference, each once, on one connection.

    Attributes:
        due_in_s: In how many seconds the next delayed item is due, as of the last look.
        was_fruitless: A push ended the last wait, and no item was leased since.
    """

    def __init__(self, queues: Sequence[Queue]) -> None:
        self.due_in_s = inf
        self.was_fruitless = False
        self._queues = queues
        self._clock = queues[0].clock
        # On a cluster, the connection that sends each call to its node.
        self._connection = queues[0].connection.root
        # A call reads queues whose keys may be on different nodes of a cluster separately.
        groups: dict[bytes | None, list[Queue]] = {}
        for queue in queues:
            groups.setdefault(hash_tag(queue.name), []).append(queue)
        self._groups = list(groups.values())
        self._pushes: PushWaiter | None = None
        self._reader, self._writer = os.pipe()
        for fd in (self._reader, self._writer):
            os.set_blocking(fd, False)

    def look_commands(self) -> list[Command]:
        """The commands that look at all queues; `ready_queues` reads their replies."""
        return [
            group[0].script("ready", *(k for q in group for k in (q.keys.main, q.keys.delayed)))
            for group in self._groups
        ]

    def ready_queues(self, replies: Sequence[Any]) -> list[Queue]:
        """The queues that may have an item, in order of preference.

        Args:
            replies: The replies to `look_commands`; those that are errors are ignored.
        """
        looks = [
            (group, reply)
            for group, reply in zip(self._groups, replies, strict=True)
            if not isinstance(reply, ServerError)
        ]
        due_ms = [reply[0] for _, reply in looks if reply[0] >= 0]
        self.due_in_s = min(due_ms) / 1000 if due_ms else inf
        found = {group[number - 1].name for group, reply in looks for number in reply[1:]}
        return [queue for queue in self._queues if queue.name in found]

    def wait(self, timeout_s: float) -> bool:
        """Wait until a queue may have an item.

        All queues together cost one call a second. A push is noticed at once, or with many queues
        within that second.

        Args:
            timeout_s: How long to wait at most, seconds.

        Raises:
            ServerError: The server is gone, or refused; the caller may try again after a pause.

        Returns:
            Whether there may be an item; False after the timeout, or after `wake`.
        """
        deadline_s = self._clock.monotonic() + timeout_s
        try:
            while (left_s := deadline_s - self._clock.monotonic()) > 0:
                # Before the first look: a failed attempt to lease was one.
                look_s = max(0.001, min(_LOOK_S, left_s, self.due_in_s))
                self.was_fruitless = self._open().wait(look_s, was_fruitless=self.was_fruitless)
                if self.was_fruitless:
                    return True
                if self._is_woken():
                    return False
                if self._look():
                    return True
        except ServerError:
            self._close_pushes()
            raise
        return False

    def _look(self) -> bool:
        """Find out when the next item is due, and whether a queue may have one now."""
        if len(self._queues) > _WATCHED_QUEUES:
            return bool(self.ready_queues(self._connection.call_all(self.look_commands())))
        # Single commands cost the server a tenth of a script.
        looks = [
            command
            for queue in self._queues
            for command in (
                ("LLEN", queue.keys.main),
                ("ZRANGE", queue.keys.delayed, 0, 0, "WITHSCORES"),
            )
        ]
        (seconds, microseconds), *replies = self._connection.call_all([("TIME",), *looks])
        now_ms = seconds * 1000 + microseconds / 1000
        # A member and its score; a pair of both where a client speaks RESP3.
        last = [first[-1] for first in replies[1::2] if first]
        due_ms = [float(each[-1] if isinstance(each, list) else each) for each in last]
        self.due_in_s = (min(due_ms, default=inf) - now_ms) / 1000
        return self.due_in_s <= 0 or any(replies[::2])

    def pause(self, seconds: float) -> None:
        """Wait, but not for work."""
        with self._push_waiter([]) as waiter:
            waiter.wait(seconds)
        self._is_woken()

    def wake(self) -> None:
        """End the wait or pause, or the next one; for other threads and signal handlers."""
        with suppress(OSError):
            os.write(self._writer, b"x")

    def _is_woken(self) -> bool:
        with suppress(OSError):
            return bool(os.read(self._reader, 4096))
        return False

    def _open(self) -> "PushWaiter":
        if self._pushes is None:
            few = self._queues if len(self._queues) <= _WATCHED_QUEUES else []
            self._pushes = self._push_waiter(few)
        return self._pushes

    def _push_waiter(self, queues: Sequence[Queue]) -> "PushWaiter":
        # Imports redis, which `rwq work --help` does not need.
        from rwq_cli.core.server.push_waiter import PushWaiter

        lists = {queue.keys.main: queue.connection for queue in queues}
        return PushWaiter(lists, interrupt=self._reader)

    def _close_pushes(self) -> None:
        if self._pushes is not None:
            self._pushes.close()
            self._pushes = None

    def close(self) -> None:
        """Close all links and files."""
        self._close_pushes()
        fds = self._reader, self._writer
        # A late `wake` must not write to a file that has the number by then.
        self._reader = self._writer = -1
        for fd in fds:
            with suppress(OSError):
                os.close(fd)
