"""What is sent again to a cluster or through Sentinel, and what never is."""

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from redis import exceptions as rx

from rwq_cli.core import errors
from rwq_cli.core.server.commands import Command, ScriptCommand, Transaction
from rwq_cli.core.server.connection import Connection
from rwq_cli.core.server.following import FollowingConnection, SharedState
from rwq_cli.core.server.link import LinkOptions
from rwq_cli.core.server.resend import CASES, case_of

MOVED = rx.MovedError("42 h:1")
TRY_AGAIN = rx.TryAgainError("Multiple keys request")
LOST = errors.ConnectionLost("lost")
REFUSE_ALL = object()


class Locator:
    """Notes what it is told."""

    was_found = True

    def __init__(self) -> None:
        self.told: list[str] = []

    def node(self) -> Any:
        raise AssertionError("nothing is connected")

    def note_moved(self, refusal: rx.MovedError) -> None:
        self.told.append(f"moved to {refusal.host}:{refusal.port}")

    def forget(self) -> None:
        self.told.append("forget")

    def close(self) -> None:
        pass


class Scripted:
    """A connection whose node gives these answers, one list or error for each round trip.

    Attributes:
        sent: What each round trip sent.
        locator: Its locator.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *answers: Any, patience_s: float = 30.0
    ) -> None:
        self.sent: list[list[Command]] = []
        self.locator = Locator()
        waiting = list(answers)

        def send(_self: Any, requests: Sequence[Command], *, writes: bool) -> list[Any]:  # noqa: ARG001
            self.sent.append(list(requests))
            answer = waiting.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return [TRY_AGAIN] * len(requests) if answer is REFUSE_ALL else list(answer)

        monkeypatch.setattr(Connection, "_send", send)

        def no_twin(_reply_timeout_s: float) -> Connection:
            raise AssertionError

        shared = SharedState("c", "c", LinkOptions(1, 1), patience_s, no_twin)
        self.connection = FollowingConnection(shared, self.locator)


def test_only_what_was_refused_is_sent_again_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = Scripted(
        monkeypatch, [b"1", TRY_AGAIN, b"3", TRY_AGAIN], [TRY_AGAIN, b"4"], [MOVED], [b"2"]
    )
    commands = [("GET", b"%d" % number) for number in range(1, 5)]
    assert scripted.connection.call_all(commands) == [b"1", b"2", b"3", b"4"]
    first, second = commands[1], commands[3]
    assert scripted.sent == [commands, [first, second], [first], [first]]
    assert scripted.locator.told == ["moved to h:1"]


@pytest.mark.parametrize(
    "refusal",
    [
        MOVED,
        rx.AskError("42 h:1"),
        TRY_AGAIN,
        rx.ClusterDownError("The cluster is down"),
        rx.MasterDownError("Link with MASTER is down"),
        rx.ReadOnlyError("You can't write against a read only replica."),
        errors.Loading("loading"),
    ],
)
def test_a_refused_script_is_sent_again(monkeypatch: pytest.MonkeyPatch, refusal: Any) -> None:
    answer = refusal if isinstance(refusal, errors.ServerError) else [refusal]
    scripted = Scripted(monkeypatch, answer, [b"done"])
    assert scripted.connection.run("lease", [b"k"], []) == b"done"
    assert len(scripted.sent) == 2


@pytest.mark.parametrize(
    "refusal",
    [
        rx.OutOfMemoryError("command not allowed"),
        rx.NoPermissionError("no permissions"),
        rx.ClusterCrossSlotError("Keys in request don't hash to the same slot"),
        rx.ResponseError("Script attempted to access a non local key in a cluster node"),
    ],
)
def test_other_refusals_are_raised_at_once(monkeypatch: pytest.MonkeyPatch, refusal: Any) -> None:
    scripted = Scripted(monkeypatch, [refusal])
    with pytest.raises(errors.ServerError):
        scripted.connection.run("lease", [b"k"], [])
    assert len(scripted.sent) == 1


def test_what_may_have_changed_something_is_never_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A write whose reply was lost, also when it was sent again after a refusal."""
    for answers in ([LOST], [REFUSE_ALL, LOST]):
        for act in (
            lambda connection: connection.run("complete", [b"k"], []),
            lambda connection: connection.call("DEL", b"k"),
            lambda connection: connection.call_all([("GET", b"k"), ("DEL", b"k")]),
            lambda connection: connection.call_all([ScriptCommand("touch", [b"k"], [])]),
        ):
            scripted = Scripted(monkeypatch, *answers)
            with pytest.raises(errors.ConnectionLost) as caught:
                act(scripted.connection)
            assert caught.value.in_doubt
            assert len(scripted.sent) == len(answers)


def test_a_read_whose_reply_was_lost_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = Scripted(monkeypatch, LOST, LOST, [b"1"])
    assert scripted.connection.call("GET", b"k") == b"1"
    assert scripted.locator.told == ["forget", "forget"]
    scripted = Scripted(monkeypatch, LOST, [[0, b"1"]])
    assert scripted.connection.call_all([("LLEN", b"k"), ("GET", b"k")], atomic=True) == [0, b"1"]
    assert isinstance(scripted.sent[1][0], Transaction)


def test_without_patience_a_refusal_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = Scripted(monkeypatch, [TRY_AGAIN], patience_s=0)
    with pytest.raises(errors.Unavailable, match="is moving this queue"):
        scripted.connection.call("GET", b"k")


def test_a_caller_that_is_stopped_waits_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted = Scripted(monkeypatch, [TRY_AGAIN])
    scripted.connection.stop.requested = True
    with pytest.raises(KeyboardInterrupt):
        scripted.connection.call("GET", b"k")


def test_every_case_says_why_it_is_safe() -> None:
    assert all(case.why for case in CASES)
    assert [case.failure for case in CASES if not case.writes] == [errors.ConnectionLost]
    assert case_of(b"OK", writes=True) is None
    assert case_of(LOST, writes=True) is None


def test_a_single_server_loads_none_of_this() -> None:
    program = (
        "import sys; from rwq_cli.core import Server, connect; connect(Server('redis://h'));"
        "print([m for m in sys.modules if m.startswith('rwq_cli.core.server.') and "
        "m.split('.')[-1] in ('cluster', 'sentinel', 'following', 'resend', 'hosts', 'suggest')])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ran.stdout == b"[]\n"
