"""A server that calls go to, as a redis-py client, and how it is found again."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from rwq_cli.core import errors
from rwq_cli.core.server.error_mapping import REPLIES, translate, unreachable
from rwq_cli.core.server.link import FAILURES, Link, Modes
from rwq_cli.core.server.patience import limited, limits

# Extra time beyond the caller's deadline, for a call that begins just before it; a write has more.
GRACE_S = 2.0
READ_GRACE_S = 0.3


class Timeouts(NamedTuple):
    """The timeouts for connecting and for one reply, seconds."""

    connect_s: float
    reply_s: float


class Node:
    """One server, named by its own address; redis-py's client has the pool of its connections."""

    # By Sentinel or a cluster, after a failover.
    is_found_again = False

    def __init__(self, client: Any, name: str, timeouts: Timeouts) -> None:
        self._client = client
        self.name = name
        self.timeouts = timeouts
        # If it was never reached, the address may be wrong.
        self.was_found = False

    def client(self) -> Any:
        """The client of the server, looked up if necessary."""
        return self._client

    def take(self, modes: Modes, *, writes: bool) -> Link:
        """A link that is ready for a command; the caller releases or closes it."""
        # Without its reply, nobody knows what a write has done.
        limits.grace_s = GRACE_S if writes else READ_GRACE_S
        limits.connect_s = self.timeouts.connect_s
        pool = self.client().connection_pool
        try:
            link = Link(pool, self.name, self.timeouts.reply_s)
        except errors.RwqError:
            raise
        except (*FAILURES, ValueError) as error:
            raise self._failure(error) from error
        self.was_found = True
        try:
            link.set_modes(modes)
        except BaseException as error:
            link.close()
            if isinstance(error, errors.ConnectionLost):
                error.hint = "try again in a moment"
            raise
        return link

    def forget(self) -> None:
        """Close the idle connections; the next is resolved and authenticated anew."""
        self._client.connection_pool.disconnect(inuse_connections=False)

    def _failure(self, error: Exception) -> errors.RwqError:
        """The error for a connection that could not be made."""
        # A provider of credentials that fails does so within redis-py's own error.
        if isinstance(error.__cause__, errors.RwqError):
            return error.__cause__
        if isinstance(error, REPLIES):
            return translate(error, self.name)
        return unreachable(error, self.name, limited(self.timeouts.connect_s))


@contextmanager
def using(link: Link, *, writes: bool) -> Iterator[Link]:
    """Release a link at the end of the block, or close it if the block fails."""
    try:
        yield link
    except BaseException as error:
        # A reply may be outstanding.
        link.close()
        if isinstance(error, errors.ConnectionLost) and not writes:
            error.hint = "try again in a moment"
        raise
    else:
        link.release()
