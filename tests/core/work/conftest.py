"""Sessions on a connection that can be made to fail."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rwq_cli.core import Connection, WorkQueue
from rwq_cli.core.errors import ConnectionLost, ServerError, Unreachable
from rwq_cli.core.server.commands import ScriptCommand
from rwq_cli.core.work.session import WorkSession
from tests.conftest import HOLDER, QUEUE, FakeClock

LEASE_S = 60.0


class Unreliable(Connection):
    """A connection that loses calls or replies.

    Attributes:
        loses: What is lost next: `calls`, `replies`, `replies of scripts`, or nothing.
        fails: The command whose calls are lost.
        refusal: The error that the next calls of a pipeline get instead of the reply; by index.
    """

    def __init__(self, inner: Connection) -> None:
        super().__init__(inner.client(), inner.name)
        self.loses = self.fails = ""
        self.refused: dict[int, ServerError] = {}
        self.round_trips = 0
        # Its copies, such as those with a deadline, do what it is told.
        self._original = self

    def call_all(self, commands: Any, **options: Any) -> list[Any]:
        faults = self._original
        faults.round_trips += 1
        if faults.loses == "calls":
            raise Unreachable("cannot reach it")
        sent = list(commands)
        if any(command[0] == faults.fails for command in sent):
            raise Unreachable("cannot reach it")
        replies: list[Any] = super().call_all(sent, **options)
        is_script = bool(sent) and isinstance(sent[0], ScriptCommand)
        if faults.loses == "replies" or (is_script and faults.loses == "replies of scripts"):
            raise ConnectionLost("lost it")
        for at, error in faults.refused.items():
            replies[at] = error
        return replies


@pytest.fixture
def unreliable(connection: Connection) -> Unreliable:
    return Unreliable(connection)


@pytest.fixture
def open_session(unreliable: Unreliable, clock: FakeClock) -> Iterator[Callable[..., WorkSession]]:
    """Opens sessions on the queue under test, or on those with other names."""
    opened = []

    def open_on(*names: bytes, **options: Any) -> WorkSession:
        queues = [
            WorkQueue(unreliable, name, holder=HOLDER, clock=clock) for name in names or (QUEUE,)
        ]
        options = {"lease_s": LEASE_S, "rng": random.Random(1), **options}
        opened.append(WorkSession(queues, **options))
        return opened[-1]

    yield open_on
    for session in opened:
        session.waiter.close()


@pytest.fixture
def session(open_session: Callable[..., WorkSession]) -> WorkSession:
    return open_session()
