"""Finding queues that have work, and waiting for some, without popping any."""

import os
import select
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from typing import Any

from rwq_cli.core.errors import ServerError
from rwq_cli.core.handle import Queue
from rwq_cli.core.server.commands import Command
from rwq_cli.core.server.push_waiter import PushWaiter

# How often an idle worker looks, in case a delayed item falls due earlier than expected.
LOOK_EVERY_S = 1.0
# Up to this many queues, a push is noticed at once; each queue then takes a blocked link.
_WATCHED_QUEUES = 8


class WorkWaiter:
    """Finds out which queues may have an item to lease; `wake` may be called by any thread."""

    def __init__(self, queues: Sequence[Queue]) -> None:
        # Until the next delayed item is due, as of the last look.
        self.due_in_s = inf
        # A push ended the last wait, and no item was leased since.
        self.was_fruitless = False
        self._queues = queues
        self._clock = queues[0].clock
        # On a cluster, the connection that sends each call to its node.
        self._connection = queues[0].connection.root
        self._reader, self._writer = os.pipe()
        for fd in (self._reader, self._writer):
            os.set_blocking(fd, False)
        few = queues if len(queues) <= _WATCHED_QUEUES else []
        lists = {queue.keys.main: queue.connection for queue in few}
        self._pushes = PushWaiter(lists, interrupt=self._reader)

    def look_commands(self) -> list[Command]:
        """The commands that look at all queues; `ready_queues` reads their replies."""
        # Single commands cost the server a tenth of a script.
        looks: list[Command] = [("TIME",)]
        for keys in (queue.keys for queue in self._queues):
            looks += ("LLEN", keys.main), ("ZRANGE", keys.delayed, 0, 0, "WITHSCORES")
        return looks

    def ready_queues(self, replies: Sequence[Any]) -> list[Queue]:
        """The queues that may have an item, in order of preference. Replies that are errors are
        ignored: one node of a cluster may be lost."""
        clock, *looks = replies
        now_ms = inf if isinstance(clock, ServerError) else clock[0] * 1000 + clock[1] / 1000
        self.due_in_s = inf
        ready: list[Queue] = []
        for queue, length, first in zip(self._queues, looks[::2], looks[1::2], strict=True):
            due_in_ms = inf
            if first and not isinstance(first, ServerError):
                # A member and its score; a pair of both where a client speaks RESP3.
                score = first[-1]
                due_in_ms = float(score[-1] if isinstance(score, list) else score) - now_ms
            if due_in_ms <= 0 or (length and not isinstance(length, ServerError)):
                ready.append(queue)
            self.due_in_s = min(self.due_in_s, due_in_ms / 1000)
        return ready

    def wait(self, timeout_s: float) -> bool:
        """Wait for so many seconds until a queue may have an item; return whether one may.

        All queues together cost one call a second. A push is noticed at once, or with many queues
        within that second. `wake` ends it. After a `ServerError`, it may be called again.
        """
        deadline_s = self._clock.monotonic() + timeout_s
        try:
            while (left_s := deadline_s - self._clock.monotonic()) > 0:
                # Before the first look: a failed attempt to lease was one.
                look_s = max(0.001, min(LOOK_EVERY_S, left_s, self.due_in_s))
                self.was_fruitless = self._pushes.wait(look_s, was_fruitless=self.was_fruitless)
                if self.was_fruitless:
                    return True
                if self._is_woken():
                    return False
                if self.ready_queues(self._connection.call_all(self.look_commands())):
                    return True
        except ServerError:
            self._pushes.close()
            raise
        return False

    def pause(self, seconds: float) -> None:
        """Wait, but not for work."""
        poller = select.poll()
        poller.register(self._reader, select.POLLIN)
        poller.poll(seconds * 1000)
        self._is_woken()

    def wake(self) -> None:
        """End the wait or pause, or the next one; for other threads and signal handlers."""
        with suppress(OSError):
            os.write(self._writer, b"x")

    def _is_woken(self) -> bool:
        with suppress(OSError):
            return bool(os.read(self._reader, 4096))
        return False

    def close(self) -> None:
        self._pushes.close()
        fds = self._reader, self._writer
        # A late `wake` must not write to a file that has the number by then.
        self._reader = self._writer = -1
        for fd in fds:
            with suppress(OSError):
                os.close(fd)
