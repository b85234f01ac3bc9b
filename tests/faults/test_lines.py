"""A proxy between rwq and the server that stalls, delays or splits what passes, in each direction.

Cuts are in `test_cuts.py`.
"""

import pytest

from tests.faults.verbs import SOME_VERBS, Stage, Verb, name_of
from tests.proxies import Fault, FaultyProxy, Line
from tests.servers import PrivateServer


def lengths(stage: Stage, verb: Verb) -> dict[str, int]:
    """How many bytes pass in each direction, when the server has the scripts."""
    for _ in range(2):
        stage.arrange(verb)
        with Line() as line:
            stage.run(verb)
    stage.arrange(verb)
    return line.passed


def run_through(
    stage: Stage, server: PrivateServer, verb: Verb, fault: Fault, side: str, at: int, *more: str
) -> tuple[str, str]:
    """Run a verb through a proxy; how it ended, and its notes."""
    proxy = FaultyProxy(server.socket, after_bytes=at, side=side, fault=fault)
    try:
        # Given as an option: the undo file that `check` uses names the proxy.
        result = stage.run(verb, "-u", proxy.url, *more)
    finally:
        proxy.close()
    return stage.check(verb, result), result.notes


@pytest.mark.parametrize("fault", [Fault.DELAY, Fault.SPLIT])
@pytest.mark.parametrize("verb", SOME_VERBS, ids=name_of)
def test_what_comes_late_or_in_pieces_is_read(
    stage: Stage, server: PrivateServer, verb: Verb, fault: Fault
) -> None:
    for side, length in lengths(stage, verb).items():
        stage.arrange(verb)
        assert run_through(stage, server, verb, fault, side, length // 2)[0] == "done"


@pytest.mark.parametrize("side", ["up", "down"])
@pytest.mark.parametrize("verb", SOME_VERBS, ids=name_of)
def test_a_line_that_stalls_is_given_up(
    stage: Stage, server: PrivateServer, verb: Verb, side: str
) -> None:
    # What passes may be some digits of a time shorter than before. A clean that is done lets go of
    # its lock, and does not mind if that fails.
    at = lengths(stage, verb)[side] - (400 if verb.words.startswith(("clean", "doctor")) else 20)
    timeouts = ("--connect-timeout", "0.1", "--reply-timeout", "0.1")
    came_to, notes = run_through(stage, server, verb, Fault.STALL, side, at, *timeouts)
    assert came_to != "done"
    assert "did not answer within" in notes
