"""`rwq clean --every`: cleans until it is stopped, through the loss of the server."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import Foreign, StartServer
from tests.driver import TIMEOUT_S, Rwq, next_line

FAST = ("--every", "50ms", "--grace", "10ms")
Process = subprocess.Popen[bytes]


def ended(process: Process, number: int = signal.SIGTERM) -> tuple[int, bytes, bytes]:
    """The exit code, stdout and stderr of a process that gets a signal."""
    process.send_signal(number)
    out, err = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, out, err


def started(rwq: Rwq, *words: str, depth: str = "light", **options: Any) -> Process:
    """A cleaner that has written its first line."""
    process = rwq.start("clean", depth, *words, bufsize=0, **options)
    assert next_line(process.stderr).startswith(
        f"rwq: running a {depth} clean of jobs every ".encode()
    )
    return process


def test_rounds_that_did_something_say_so(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"0")
    process = started(rwq, *FAST)
    for item_id in (b"1", b"2"):
        foreign.abandoned(item_id)
        assert next_line(process.stderr) == b"returned 1\n"
    assert ended(process) == (0, b"", b"")
    assert foreign.raw.lrange("jobs:queue", 0, -1) == [b"2", b"1", b"0"]


def test_a_round_that_only_prunes_is_no_news(
    rwq: Rwq, foreign: Foreign, pauses: Callable[..., None]
) -> None:
    foreign.waiting(b"0")
    foreign.raw.hset("jobs:returns", "gone", 1)
    pauses(lambda: foreign.abandoned(b"1"))
    result = rwq("clean", "light", "--every", "30s", "--grace", "0", "-Q")
    assert (result.code, result.notes) == (130, "returned 1\n")
    assert foreign.raw.exists("jobs:returns") == 1, "only the count of what was returned"
    assert foreign.raw.hkeys("jobs:returns") == [b"1"]


class TestStopping:
    def test_sigterm_ends_it_while_the_server_does_not_reply(
        self, rwq: Rwq, start_server: StartServer
    ) -> None:
        server = start_server()
        with server.client() as raw:
            Foreign(raw).abandoned(b"1")
        process = started(rwq, *FAST, variables={"RWQ_URL": server.url})
        assert next_line(process.stderr) == b"returned 1\n"
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(0.2)
        assert ended(process)[0] == 0

    def test_sigterm_ends_it_even_where_python_handles_no_signals(self, rwq: Rwq) -> None:
        """As in a look-up of a host's name that gets no answer."""
        program = (
            "import ctypes, signal, socket, sys\n"
            "def look_up(*_, **__):\n"
            "    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
            "    print('looking up', file=sys.stderr, flush=True)\n"
            "    ctypes.CDLL(None).sleep(3600)\n"
            "socket.getaddrinfo = look_up\n"
            "import rwq_cli.__main__ as rwq\n"
            "rwq.main()\n"
        )
        command = (sys.executable, "-c", program)
        process = started(rwq, *FAST, command=command, variables={"RWQ_URL": "redis://db1"})
        assert next_line(process.stderr) == b"looking up\n"
        assert ended(process) == (0, b"", b"")


def test_it_goes_on_when_the_server_is_back(
    rwq: Rwq, start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server()
    link = tmp_path / "socket"
    link.symlink_to(server.socket)
    with server.client() as raw:
        Foreign(raw).abandoned(b"1")
        process = started(rwq, *FAST, variables={"RWQ_URL": f"unix://{link}"})
        assert next_line(process.stderr) == b"returned 1\n"
    server.kill()
    line = next_line(process.stderr).decode()
    assert line.startswith("rwq: ")
    assert line.endswith("; trying again until the server responds\n")
    other = start_server()
    link.unlink()
    link.symlink_to(other.socket)
    assert next_line(process.stderr).startswith(b"rwq: the server is responding again after ")
    with other.client() as raw:
        Foreign(raw).abandoned(b"2")
        assert next_line(process.stderr) == b"returned 1\n"
    assert ended(process)[0] == 0
