"""Streams that end, are closed or full, and Ctrl-C: quiet where it is right, and nothing lost."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import run

import pytest
import redis

from tests.conftest import Foreign
from tests.driver import TIMEOUT_S, Rwq, next_line


def test_a_loop_of_leases_takes_it_for_no_empty_queue(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(b"a", b"b")
    with open("/dev/full", "wb") as full:
        process = rwq.start("lease", "-o", "data", stdout=full)
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 3
    assert b"rwq: a could not be printed, and is released" in err
    assert rwq("ls", "-o", "ids").text == "a\nb\n"
    with open("/dev/full", "wb") as full:
        process = rwq.start("lease", "-n", "2", "-o", "data", stdout=full)
    assert b"leased to this session; rwq release --mine puts them back" in process.communicate()[1]
    assert rwq("release", "--mine").code == 0
    assert rwq("stats", "--fields", "waiting,processing", "-o", "csv").text.endswith("2,0\n")


def test_a_full_stderr_is_ignored(rwq: Rwq, raw: redis.Redis) -> None:
    with open("/dev/full", "wb") as full:
        process = rwq.start("add", "x", stderr=full)
    assert process.communicate(timeout=TIMEOUT_S)[0] == b""
    assert process.returncode == 0
    assert raw.llen("jobs:queue") == 1


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_with_closed_streams_a_command_does_its_work(
    rwq: Rwq, foreign: Foreign, closed: str
) -> None:
    """As some supervisors start it."""
    foreign.waiting(b"a")
    assert rwq.shell(f"rwq complete a {closed}").as_tuple() == (0, "", "")
    assert rwq.shell(f"rwq add x {closed}").as_tuple() == (0, "", "")
    assert foreign.raw.llen("jobs:queue") == 1


def interrupted_after(process: "subprocess.Popen[bytes]", size: int) -> tuple[bytes, bytes]:
    """stdout and stderr of a command that gets Ctrl-C once it has printed so much."""
    assert process.stdout is not None
    out = b""
    while len(out) < size:
        piece = os.read(process.stdout.fileno(), 65536)
        assert piece, "it ended before it was interrupted"
        out += piece
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    return out + rest, err


def test_an_add_interrupted_at_work_counts_every_item(
    rwq: Rwq, raw: redis.Redis, tmp_path: Path
) -> None:
    """What is in is what is told, to the last item."""
    lines = tmp_path / "lines"
    lines.write_bytes(b"".join(b"%d\n" % number for number in range(200_000)))
    process = rwq.start("add", "-f", str(lines), "-o", "ids")
    out, err = interrupted_after(process, 300_000)
    printed = out.split()
    assert 5_000 < len(printed) < 200_000
    assert err == f"interrupted: added {len(printed):,}\n".encode()
    assert raw.llen("jobs:queue") == len(printed)


@pytest.mark.parametrize(
    "line",
    [
        *("add --id-from line", "rm --yes -"),
        # In this process, for all verbs: test_every_stream.py.
        *(
            pytest.param(line, marks=pytest.mark.ci)
            for line in ("release --force --yes -", "show -")
        ),
    ],
)
def test_ids_are_read_as_they_come(rwq: Rwq, foreign: Foreign, line: str) -> None:
    """What a script with `set -euo pipefail` does."""
    if "add" not in line:
        (foreign.leased if "--force" in line else foreign.waiting)(b"a", b"b")
    process = rwq.start(*line.split(), "-o", "ids", stderr=subprocess.DEVNULL)
    assert process.stdin is not None
    assert process.stdout is not None
    for item_id in (b"a\n", b"b\n"):
        process.stdin.write(item_id)
        process.stdin.flush()
        assert next_line(process.stdout) == item_id
    process.stdin.close()
    assert process.wait(TIMEOUT_S) == 0


@pytest.mark.parametrize(
    ("stdin", "said"),
    [("<&-", "stdin is closed"), ("0> sink", "cannot read stdin: bad file descriptor; ")],
)
def test_a_stdin_that_cannot_be_read_is_an_error(
    rwq: Rwq, foreign: Foreign, stdin: str, said: str
) -> None:
    """It is no fault of the output, and must not look like an empty list."""
    foreign.waiting(b"a")
    lines = ("add", "rm --yes -", "import -", "complete a --result -")
    result = rwq.shell("\n".join(f'rwq {line} {stdin}; echo "$?"' for line in lines))
    assert result.text.split() == ["2"] * len(lines)
    assert result.notes.count(f"rwq: error: {said}") == len(lines)
    assert foreign.raw.get("jobs:item:a") is not None


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


def test_ctrl_c_ends_the_process_from_the_first_import() -> None:
    """Without the packages of the site, which may import more than Python does."""
    hook = "lambda event, args: args[:1] == ('enum',) and print(s.getsignal(2) == s.SIG_DFL)"
    program = f"import sys, _signal as s; sys.addaudithook({hook}); import rwq_cli.__main__"
    result = run((sys.executable, "-S", "-c", program), capture_output=True)
    assert (result.returncode, result.stdout.split()[:1]) == (0, [b"True"])


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
        print("interrupted", interrupts.was_terminated)
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
def test_a_signal_in_a_callback_is_not_lost(before: str, name: str, terminated: str) -> None:
    program = _IN_A_CALLBACK.format(before=before, name=name)
    result = run((sys.executable, "-c", program), capture_output=True, text=True, timeout=TIMEOUT_S)
    assert result.stderr == ""
    assert result.stdout == f"continued\ninterrupted {terminated}\n"


def test_ids_that_end_with_null_are_noted(rwq: Rwq) -> None:
    note = "lines of stdin hold NUL; -0 reads IDs that end with it\n"
    assert note in rwq("complete", "-", stdin=b"a\0b\0").notes
    assert note not in rwq("complete", "-0", "-", stdin=b"a\0b\0").notes
