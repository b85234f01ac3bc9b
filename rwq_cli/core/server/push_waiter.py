"""Waiting for a push onto any of several lists, which pops nothing and costs the server nothing."""

from collections.abc import Sequence
from selectors import EVENT_READ, DefaultSelector
from types import TracebackType

from rwq_cli.core.server.connection import Connection, Wire

# What a waiter whose machine is gone leaves behind at the server ends by itself, and whoever
# forgets a silent connection between us and it sees that this one is not.
_BLOCKED_S = 30


class PushWaiter:
    """Hears of pushes.

    Each list is watched on a connection of its own by `BLMOVE list list RIGHT RIGHT`, which blocks
    until there is an entry and puts it back where it was, in one step. One that was not answered
    stays with the server from one wait to the next.

    Args:
        connection: The server; its own connection stays free for other calls.
        lists: The keys of the lists, each once.
    """

    def __init__(self, connection: Connection, lists: Sequence[bytes]) -> None:
        self._connection = connection
        self._wires: dict[bytes, Wire] = {}
        self._unwatched = list(lists)
        self._selector: DefaultSelector | None = None

    def wait(self, seconds: float) -> None:
        """Wait until one of the lists has an entry.

        Args:
            seconds: How long at most.

        Raises:
            ServerError: The server refused, or was lost.
        """
        if self._selector is None:
            self._selector = DefaultSelector()
        for key in self._unwatched:
            if key not in self._wires:
                self._wires[key] = self._connection.wire()
                self._selector.register(self._wires[key], EVENT_READ, key)
            self._wires[key].send("BLMOVE", key, key, "RIGHT", "RIGHT", _BLOCKED_S)
        self._unwatched = []
        for ready, _ in self._selector.select(seconds):
            if self._wires[ready.data].has_answered():
                self._unwatched.append(ready.data)

    def close(self) -> None:
        """End the connections, and with them what blocks on the server."""
        for wire in self._wires.values():
            wire.close()
        self._wires.clear()
        if self._selector is not None:
            self._selector.close()

    def __enter__(self) -> "PushWaiter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
