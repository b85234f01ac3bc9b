"""One server, with the links to it that are not in use."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import redis

from rwq_cli.core import errors
from rwq_cli.core.server.link import Link, LinkOptions, OnConnect


class Node:
    """One server, with the links to it that are not in use.

    Args:
        client: A redis-py client, whose pool makes the connections.
        options: The options of its links.
        name: The server's name in messages, without a password.
        on_connect: Called with each new link, before its first command; None for nothing.
    """

    def __init__(
        self,
        client: redis.Redis,
        options: LinkOptions,
        name: str,
        on_connect: OnConnect | None = None,
    ) -> None:
        # redis-py annotates its own calls, not those of its users.
        self._client: Any = client
        self._options = options
        self._name = name
        self._on_connect = on_connect
        self._idle: list[Link] = []

    def take(self, *, fresh: bool = False) -> Link:
        """A link that is ready for a command; return it with `give`.

        Args:
            fresh: Open a new link.

        Raises:
            ServerError: It could not be opened.
        """
        link = None if fresh else self._pop()
        link = link or self._new_link()
        try:
            link.prepare()
        except BaseException as error:
            if isinstance(error, errors.ConnectionLost):
                error.hint = "try again in a moment"
            link.close()
            self.give(link)
            raise
        return link

    def _pop(self) -> Link | None:
        try:
            return self._idle.pop()
        except IndexError:
            # Another thread may have taken it.
            return None

    @contextmanager
    def lend(self) -> Iterator[Link]:
        """Lend a link that is ready for a command; see `take`."""
        with self.taken(self.take()) as link:
            yield link

    @contextmanager
    def taken(self, link: Link) -> Iterator[Link]:
        """Give a link back at the end of the block, closed if the block failed."""
        try:
            yield link
        except BaseException:
            # A reply may be outstanding.
            link.close()
            raise
        finally:
            self.give(link)

    def give(self, link: Link) -> None:
        """Keep a link for the next command; it may be closed."""
        self._idle.append(link)

    def _new_link(self) -> Link:
        # A pool counts what it has made, 100 by default, and would refuse the next one.
        pool = self._client.connection_pool
        make_raw = partial(pool.connection_class, **pool.connection_kwargs)
        return Link(make_raw, self._options, self._name, self._on_connect)

    def close(self) -> None:
        """Close the links that are not in use."""
        while (link := self._pop()) is not None:
            link.close()
