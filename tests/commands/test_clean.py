"""`rwq clean`: what was broken works again, live work is left alone; `--every` goes on for ever."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Foreign, StartServer
from tests.driver import TIMEOUT_S, Rwq, next_line

NOW = ("--grace", "0")


@pytest.fixture
def broken(foreign: Foreign) -> Foreign:
    """Of each kind of damage one, beside healthy items."""
    foreign.waiting(b"w1", b"w2")
    foreign.leased(b"l1", ttl_ms=None)
    foreign.delayed(b"d1", 9_999_999_999_999)
    foreign.buried(b"b1")
    foreign.abandoned(b"a1")
    foreign.data(b"o1")
    foreign.raw.lpush(foreign.keys.processing, b"g1")
    foreign.raw.rpush(foreign.keys.main, b"g2")
    foreign.raw.lpush(foreign.keys.main, b"w1")
    foreign.raw.hset(foreign.keys.returns, mapping={"a1": 2, "gone": 1})
    return foreign


def test_the_summary_counts_what_was_done(rwq: Rwq, broken: Foreign) -> None:
    result = rwq("clean", "light", *NOW)
    assert result.as_tuple() == (0, "", "returned 1, dropped 1, pruned 1\n")
    assert broken.raw.lrange("jobs:queue", 0, -1) == [b"a1", b"w1", b"w2", b"w1", b"g2"]
    assert rwq("clean", "deep", *NOW).notes == "returned 1, dropped 2\n"
    assert rwq("clean", "deep", *NOW).notes == "nothing to clean\n"


def test_each_id_has_its_action_and_reason(rwq: Rwq, foreign: Foreign) -> None:
    foreign.abandoned(b"a1")
    (record,) = rwq("clean", "deep", *NOW, "-o", "jsonl").jsonl
    names = ("id", "action", "state", "where")
    assert [record[name] for name in names] == ["a1", "returned", "abandoned", "processing"]


def test_it_is_waited_only_if_something_looks_broken(
    rwq: Rwq, foreign: Foreign, slept_s: list[float]
) -> None:
    foreign.waiting(b"w1")
    foreign.leased(b"l1")
    assert rwq("clean", "light").code == 0
    assert rwq("clean", "deep").code == 0
    assert slept_s == []


def test_it_is_a_second_by_default(rwq: Rwq, foreign: Foreign, slept_s: list[float]) -> None:
    foreign.abandoned(b"a1")
    assert rwq("clean", "light").notes == "returned 1\n"
    assert slept_s == [1.0]


def test_a_dry_run_names_the_first_items_for_people(rwq: Rwq, foreign: Foreign) -> None:
    foreign.abandoned(*(b"%d" % number for number in range(7)), b"\x1b[2J")
    foreign.raw.hset(foreign.keys.returns, "1", 3)
    words = ("clean", "light", *NOW, "--dry-run", "--bury-after", "3")
    plan = (
        "would return 0: abandoned\nwould bury 1: abandoned\nwould return 2: abandoned\n"
        "would return 3: abandoned\nwould return 4: abandoned\nand 3 more; -o ids lists all\n"
    )
    summary = "dry run: would return 7, bury 1\n"
    results = [rwq(*words, "-o", output).as_tuple() for output in ("table", "plain")]
    assert results == [(0, "", plan + summary)] * 2
    assert rwq(*words, "-o", "ids").notes.endswith(summary)
    assert rwq(*words, "-o", "jsonl").notes == summary
    assert rwq(*words, "-Q").notes == summary
    said = "rwq: 1: buried: abandoned again, after 3 returns\nreturned 7, buried 1\n"
    assert rwq(*(word for word in words if word != "--dry-run")).notes == said


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
    def test_sigterm_ends_it_while_the_server_is_silent(
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

    def test_sigterm_ends_it_without_pythons_handlers(self, rwq: Rwq) -> None:
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
