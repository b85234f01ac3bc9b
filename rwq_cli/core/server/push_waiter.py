"""Waiting for a push onto any of several lists, without popping and without polling the server."""

from collections.abc import Mapping
from selectors import EVENT_READ, DefaultSelector
from types import TracebackType

from redis import exceptions as rx

from rwq_cli.core.errors import ServerError
from rwq_cli.core.server.connection import Connection
from rwq_cli.core.server.error_mapping import translate
from rwq_cli.core.server.link import NO_REPLY, Link
from rwq_cli.core.server.packing import pack

# Seconds until the server ends a blocked command. It may not notice otherwise that its client is
# gone, and a load balancer or firewall may drop an idle connection.
_BLOCK_S = 30


class PushWaiter:
    """Waits for a push.

    Each list has a link on which `BLMOVE list list RIGHT RIGHT` blocks until the list has an entry,
    which it puts back in its place atomically. A command without a reply is kept for the next wait.

    Args:
        lists: The keys of the lists, each with its server, whose other calls are not blocked.
        interrupt: A file descriptor that ends a wait when it becomes readable, if any.
    """

    def __init__(self, lists: Mapping[bytes, Connection], *, interrupt: int | None = None) -> None:
        self._lists = lists
        self._links: dict[bytes, Link] = {}
        self._unwatched = list(lists)
        self._interrupt = interrupt
        self._selector: DefaultSelector | None = None

    def wait(self, seconds: float) -> bool:
        """Wait until one of the lists has an entry.

        Args:
            seconds: The timeout.

        Raises:
            ServerError: The server refused, or was lost. In a cluster or behind Sentinel, the wait
                ends early instead.

        Returns:
            Whether one has, or had since the last wait; or may have, on another node.
        """
        if self._selector is None:
            self._selector = DefaultSelector()
            if self._interrupt is not None:
                self._selector.register(self._interrupt, EVENT_READ)
        for key in self._unwatched:
            if key not in self._links:
                self._links[key] = self._lists[key].open_link()
                self._selector.register(self._links[key], EVENT_READ, key)
            self._links[key].send(pack(("BLMOVE", key, key, "RIGHT", "RIGHT", _BLOCK_S)))
        self._unwatched = []
        ready = [key.data for key, _ in self._selector.select(seconds) if key.data is not None]
        # Each, whatever the first says.
        had_entry = list(map(self._receive, ready))
        return any(had_entry)

    def _receive(self, key: bytes) -> bool:
        """Read the reply to a command; whether the list may have an entry."""
        link, connection = self._links[key], self._lists[key]
        try:
            reply = link.poll()
            if isinstance(reply, rx.ResponseError):
                raise translate(reply, connection.name, key=key) from reply
        except ServerError as error:
            if not connection.recover(error):
                raise
            # The caller looks at the list on its new node first.
            assert self._selector is not None
            self._selector.unregister(link)
            self._links.pop(key).close()
            reply = error
        if reply is not NO_REPLY:
            self._unwatched.append(key)
        # None if the server ended the command after its time.
        return reply is not NO_REPLY and reply is not None

    def close(self) -> None:
        """Close the links, which also ends their blocked commands."""
        for link in self._links.values():
            link.close()
        self._links.clear()
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
