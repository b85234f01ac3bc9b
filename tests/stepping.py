"""Two actors: one is held at a reply while the other acts, and then goes on, or is killed."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any

from rwq_cli.core import Connection
from rwq_cli.core.clock import Clock
from rwq_cli.core.server.patience import CancelToken


class Killed(BaseException):
    """Raised in an actor that was killed: it does nothing any more."""


@dataclass
class Gate:
    """Lets an actor pass until it has read so many replies, and then holds it; 0 for never."""

    stop_at: int = 0
    replies: int = 0
    is_killed: bool = False
    is_held_or_done: Event = field(default_factory=Event)
    may_go_on: Event = field(default_factory=Event)

    def check(self) -> None:
        if self.is_killed:
            raise Killed

    def count_reply(self) -> None:
        self.check()
        self.replies += 1
        if self.replies == self.stop_at:
            self.is_held_or_done.set()
            self.may_go_on.wait()
            self.check()


def gated(inner: Connection, gate: Gate) -> Connection:
    """Copy a connection, perhaps to a cluster, for an actor whose replies pass a gate."""
    kind: Any = type(inner)

    class Gated(kind):
        def _open_link(self, *, writes: bool) -> Any:
            gate.check()
            link = super()._open_link(writes=writes)
            read, send = link.read, link.send

            def gated_read(request: Any) -> Any:
                reply = read(request)
                gate.count_reply()
                return reply

            def gated_send(requests: Any) -> Any:
                gate.check()
                return send(requests)

            link.read, link.send = gated_read, gated_send
            return link

    connection: Any = copy(inner)
    connection.__class__, connection.stop = Gated, CancelToken()
    return connection


class InstantClock(Clock):
    """Sleeping takes no time; `on_sleep` may let the other actor go on."""

    def __init__(self, on_sleep: Callable[[], object] = lambda: None) -> None:
        self._now_s, self._on_sleep = 0.0, on_sleep

    def monotonic(self) -> float:
        return self._now_s

    def sleep(self, seconds: float) -> None:
        self._now_s += seconds
        self._on_sleep()


class HeldActor:
    """An actor in a thread of its own, which runs up to a reply of its own."""

    def __init__(self, gate: Gate, act: Callable[[], None]) -> None:
        self.gate, self._act = gate, act
        self.error: BaseException | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()
        gate.is_held_or_done.wait()
        # It has ended before it read so many replies.
        self.has_ended = gate.replies < gate.stop_at

    def _run(self) -> None:
        try:
            self._act()
        except Killed:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self.gate.is_held_or_done.set()

    def go_on(self) -> None:
        """Let it run to its end."""
        self.gate.may_go_on.set()
        self._thread.join()

    def kill(self) -> None:
        self.gate.is_killed = True
        self.go_on()
