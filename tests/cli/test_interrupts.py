"""When Ctrl-C ends the process at once, and when it raises."""

import signal
import sys
from subprocess import run

import pytest

from tests.driver import TIMEOUT_S

_AT_AN_IMPORT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name.startswith("{name}") and name != "rwq_cli.__main__":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
{ignored}
import rwq_cli.__main__ as rwq
sys.argv = ["rwq", *{words}]
rwq.main()
"""


NOTHING = b"interrupted: nothing done\n"
REMOVE = ["rm", "-q", "jobs", "-u", "redis://127.0.0.1:1", "--all", "--yes"]


@pytest.mark.parametrize(
    ("words", "name", "code", "said"),
    [
        (["--help"], "rwq_cli.", -signal.SIGINT, b""),
        (["--help"], "rwq_cli.cli.app", -signal.SIGINT, NOTHING),
        (REMOVE, "rwq_cli.commands.rm", -signal.SIGINT, NOTHING),
        # While the command runs.
        (REMOVE, "rwq_cli.core.server.address", 130, NOTHING),
        (["ls", *REMOVE[1:5]], "rwq_cli.core.server.address", 130, b""),
    ],
)
def test_ctrl_c_ends_the_process_at_an_import(
    words: list[str], name: str, code: int, said: bytes
) -> None:
    """What may have changed something says that it has not."""
    program = _AT_AN_IMPORT.format(ignored="", name=name, words=words)
    result = run((sys.executable, "-c", program), capture_output=True)
    assert (result.returncode, result.stdout, result.stderr) == (code, b"", said)


def test_ctrl_c_is_ignored_in_a_background_job() -> None:
    ignored = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
    program = _AT_AN_IMPORT.format(ignored=ignored, name="rwq_cli.", words=["--help"])
    result = run((sys.executable, "-c", program), capture_output=True)
    assert (result.returncode, result.stderr) == (0, b"")


_IN_A_CALLBACK = """
import os, signal, sys, weakref
from rwq_cli.cli import interrupts

class Thing:
    pass

signal.signal(signal.SIGINT, signal.{before})
interrupts.raise_on_interrupt()
reads, _ = os.pipe()
with interrupts.ending_on_terminate(within_s=3600):
    thing = Thing()
    reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.{name}))
    try:
        del thing
        print("continued", flush=True)
        os.read(reads, 1)
    except KeyboardInterrupt:
        print("interrupted", interrupts.was_terminated())
"""


@pytest.mark.parametrize(
    ("before", "name", "terminated"),
    [
        ("SIG_DFL", "SIGINT", "False"),
        ("SIG_DFL", "SIGTERM", "True"),
        # As in a background job.
        ("SIG_IGN", "SIGTERM", "True"),
    ],
)
def test_a_signal_in_a_callback_that_cannot_raise_is_not_lost(
    before: str, name: str, terminated: str
) -> None:
    program = _IN_A_CALLBACK.format(before=before, name=name)
    result = run((sys.executable, "-c", program), capture_output=True, text=True, timeout=TIMEOUT_S)
    assert result.stderr == ""
    assert result.stdout == f"continued\ninterrupted {terminated}\n"
