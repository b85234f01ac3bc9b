"""Waiting for a push onto any of several lists, without popping and without polling the server."""

import random
import time
from collections.abc import Collection, Mapping
from selectors import EVENT_READ, DefaultSelector
from time import monotonic

from redis import exceptions as rx

from rwq_cli.core.errors import PermissionDenied, ServerError
from rwq_cli.core.server.connection import Connection
from rwq_cli.core.server.endpoint import Patience
from rwq_cli.core.server.error_mapping import code_of, translate
from rwq_cli.core.server.link import NO_REPLY, Link

# Seconds until the server ends a blocked command, which is then sent again: proxies, load balancers
# and firewalls drop connections that are idle for longer.
BLOCK_S = 4
# After a wake that found nothing, a list is watched again from a random time within these seconds;
# after each more in a row within twice as many, up to a maximum. A push wakes all that watch, and
# each costs the server a command, its file and its replicas a write; so of many idle workers, only
# a few watch. All of them look once a second anyway.
_REST_S = 10.0
_REST_MAX_S = 40.0
# Where many wait, each looks whether the entry is still there after a random time within these
# seconds: most of them then need not try to take it.
_SPREAD_S = 0.02
# How often a caller looks where it cannot wait.
_POLL_S = 1.0


class PushWaiter:
    """Waits for a push.

    Each list has a link on which `BLMOVE list list RIGHT RIGHT` blocks until the list has an entry,
    which it puts back in its place atomically. A command without a reply is kept for the next wait.
    Where the server or its user may not run it, a wait ends after a second at most. A link that is
    lost is replaced: nothing happens to a queue by a wait. A wait ends when the file descriptor
    `interrupt` becomes readable.
    """

    def __init__(self, lists: Mapping[bytes, Connection], *, interrupt: int | None = None) -> None:
        self._lists = dict(lists)
        self._links: dict[bytes, Link] = {}
        # Those without a command, and from when on they may have one.
        self._unwatched = dict.fromkeys(lists, 0.0)
        self._interrupt = interrupt
        self._selector: DefaultSelector | None = None
        self._woken: set[bytes] = set()
        # Of these, the lists whose link was lost.
        self._lost: set[bytes] = set()
        # How many wakes in a row found nothing.
        self._fruitless = 0
        self._polls = False

    def wait(self, seconds: float, *, was_fruitless: bool = False) -> bool:
        """Wait until one of the lists has an entry, or had since the last wait; or may have, on
        another node. `was_fruitless` if the last one found one that somebody else has taken."""
        if self._selector is None:
            self._selector = DefaultSelector()
            if self._interrupt is not None:
                self._selector.register(self._interrupt, EVENT_READ)
        emptied = self._woken - self._lost if was_fruitless else set()
        if self._woken and not emptied:
            self._fruitless = 0
        self._rest(emptied)
        self._woken.clear()
        self._lost.clear()
        ends_s = monotonic() + seconds
        while True:
            remaining_s = ends_s - monotonic()
            if self._watch(self._selector):
                remaining_s = min(
                    remaining_s, max(0.0, min(self._unwatched.values()) - monotonic())
                )
            if self._polls:
                remaining_s = min(remaining_s, _POLL_S)
            ready = self._selector.select(max(0.0, remaining_s))
            # Each, whatever the first says.
            self._woken.update(
                key.data for key, _ in ready if key.data in self._links and self._receive(key.data)
            )
            if self._woken and self._fruitless:
                # Somebody else may have taken an entry by now.
                time.sleep(random.uniform(0, _SPREAD_S))
                emptied = {key for key in self._woken if not self._lists[key].call("LLEN", key)}
                self._woken -= emptied
                self._rest(emptied)
            if self._woken or any(key.data is None for key, _ in ready):
                return bool(self._woken)
            if monotonic() >= ends_s or self._polls:
                return False

    def _rest(self, keys: Collection[bytes]) -> None:
        if not keys:
            return
        rest_s = random.uniform(0, min(_REST_MAX_S, _REST_S * 2**self._fruitless))
        # Only until the maximum: a worker may find nothing for days.
        self._fruitless = min(self._fruitless + 1, 9)
        from_s = monotonic() + rest_s
        self._unwatched |= {key: from_s for key in keys if key in self._unwatched}

    def _watch(self, selector: DefaultSelector) -> bool:
        """Send the commands that are due; return whether others will be."""
        for key, from_s in list(self._unwatched.items()):
            if from_s > monotonic():
                continue
            if key not in self._links:
                connection = self._lists[key]
                self._links[key] = connection.open_link(writes=False, patience=Patience(connection))
                selector.register(self._links[key], EVENT_READ, key)
            self._links[key].send([("BLMOVE", key, key, "RIGHT", "RIGHT", BLOCK_S)])
            del self._unwatched[key]
        return bool(self._unwatched)

    def _receive(self, key: bytes) -> bool:
        """Read the reply to a command; return whether the list may have an entry."""
        connection = self._lists[key]
        try:
            reply = self._links[key].read_one(polls=True)
            if isinstance(reply, rx.ResponseError):
                refusal = translate(reply, connection.name, ("BLMOVE", key))
                if code_of(reply) == "ERR" or isinstance(refusal, PermissionDenied):
                    self._polls = True
                    self._unwatched.clear()
                    for watched in list(self._links):
                        self._close(watched)
                    connection.tell(f"looking for items once a second: {refusal.message}")
                    return False
                raise refusal from reply
        except ServerError as error:
            if not Patience(connection).may_repeat(error, writes=False):
                raise
            # The caller looks at the list on its new node first.
            self._close(key)
            self._lost.add(key)
            reply = error
        if reply is not NO_REPLY:
            self._unwatched[key] = 0.0
        # None if the server ended the command after its time.
        return reply is not NO_REPLY and reply is not None

    def _close(self, key: bytes) -> None:
        link = self._links.pop(key)
        assert self._selector is not None
        self._selector.unregister(link)
        link.close()

    def close(self) -> None:
        """Close the links, which also ends their blocked commands; a wait opens them again."""
        for key in list(self._links):
            self._close(key)
        self._unwatched = dict.fromkeys(self._lists, 0.0)
        if self._selector is not None:
            self._selector.close()
            self._selector = None
