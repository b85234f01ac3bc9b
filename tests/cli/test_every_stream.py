"""Every command, whatever its streams are like: all of it arrives and is read, or an error.

The commands are those of the registry. One that is not in `LINES` is run without arguments.
"""

import fcntl
import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from rwq_cli.cli.app import CommandInfo, all_commands
from rwq_cli.streams import Writer
from tests.conftest import Foreign
from tests.driver import TIMEOUT_S, Result, Rwq

# Command lines that print something, with waiting items, a leased and a buried one.
LINES = {
    "add": "add x y -o jsonl",
    "work": "work --drain -o jsonl -- true",
    "lease": "lease -n 2 -o jsonl",
    "complete": "complete w1 gone -o jsonl",
    "result": "result w1",
    "touch": "touch l1 -o jsonl",
    "release": "release l1 --force --yes -o jsonl",
    "bury": "bury w1 -o jsonl",
    "kick": "kick b1 -o jsonl",
    "edit": "edit w1 --yes -f /dev/null -o json",
    "rm": "rm w1 gone --yes -o jsonl",
    "mv": "mv --to other w1 --yes -o jsonl",
    "purge": "purge --yes -o json",
    "undo": "undo --list -o json",
    "show": "show w1",
    "wait": "wait --below 9",
    "clean light": "clean light --grace 0 -o json",
    "clean deep": "clean deep --grace 0 -o json",
    "export": "export",
    "import": "import /dev/null -o json",
    "context set": "context set dev -u local:",
    "context use": "context use dev",
    "context rm": "context rm dev",
    "local start": "local status",
    "local stop": "local status",
    "completion": "completion bash",
}
# What each command that has IDs, or reads stdin otherwise, needs to read them from there.
READS = {"complete": "", "mv": "--to other", "edit": ""}
OTHER_INPUTS = {
    "add --id-from line": b"one\ntwo\nthree\n",
    "add --format jsonl -o ids": b'{"data": 1, "id": "j1"}\n{"data": 2, "id": "j2"}\n',
    "import -": b'{"rwq_export": 1, "queue": "jobs"}\n{"id": "i1", "data": "x", "place": "main"}\n',
}
MARK = b"\xef\xbb\xbf"
FULL = b"cannot write the output: no space left on device"

COMMANDS = [each for each in all_commands() if each.path != "demo"]


def has_ids(command: CommandInfo) -> bool:
    arguments = (each for each in command.command.params if each.param_type_name == "argument")
    # `edit -` has no stdin left for an editor.
    return any(each.name == "ids" for each in arguments) and command.path != "edit"


WITH_IDS = [each.path for each in COMMANDS if has_ids(each)]


@pytest.fixture
def seed(rwq: Rwq, foreign: Foreign) -> Callable[[], None]:
    """Makes the server and the home as they are before each run."""

    def begin() -> None:
        foreign.raw.flushall()
        foreign.waiting(b"w1", b"w2", b"w3")
        foreign.leased(b"l1", holder=b"worker-7", ttl_ms=3_600_000)
        foreign.buried(b"b1")
        with suppress(FileNotFoundError):
            (rwq.home / ".config" / "rwq" / "config.toml").unlink()

    return begin


def alike(out: bytes) -> bytes:
    """Output without what differs from run to run: times, random IDs, names of files."""
    return re.sub(rb"[0-9a-f]{32}|[0-9]+(\.[0-9]+)?(ms|s|m|h)?( ago)?|just now", b"#", out)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.path)
def test_all_that_is_written_arrives_or_is_an_error(
    rwq: Rwq, seed: Callable[[], None], command: CommandInfo
) -> None:
    line = LINES.get(command.path, command.path).split()
    seed()
    wanted = rwq.process(*line)
    seed()
    out, found = into_slow_pipe(rwq, *line)
    assert alike(out) == alike(wanted.out)
    assert (found.code, alike(found.err)) == (wanted.code, alike(wanted.err))

    seed()
    with open("/dev/full", "wb") as full:
        process = rwq.start(*line, stdout=full)
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == (3 if wanted.out else wanted.code)
    assert not wanted.out or FULL in err
    assert b"this is a bug" not in err

    seed()
    reads, writes = os.pipe()
    os.close(reads)
    process = rwq.start(*line, stdout=writes)
    os.close(writes)
    _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode in (0, wanted.code)
    assert b"error" not in err or alike(err) == alike(wanted.err)


def into_slow_pipe(rwq: Rwq, *line: str) -> tuple[bytes, Result]:
    """Run with Python's streams unbuffered, into a pipe that does not block and is full at first.

    The process is stopped and continued meanwhile.
    """
    reads, writes = os.pipe()
    fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writes, False)
    os.write(writes, b"." * 4096)
    process = rwq.start(*line, stdout=writes, variables={"PYTHONUNBUFFERED": "1"})
    os.close(writes)
    assert process.stdin is not None
    process.stdin.close()
    process.stdin = None
    # Then it has something to say, or has ended.
    used: list[int] = []
    while process.poll() is None and (len(used) < 4 or not used[-4] == used[-1] > 0):
        time.sleep(0.08)
        with suppress(OSError):
            used.append(sum(map(int, Path(f"/proc/{process.pid}/stat").read_text().split()[13:15])))
    process.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGCONT)
    with open(reads, "rb") as reader:
        out = reader.read()
    _, err = process.communicate(timeout=TIMEOUT_S)
    return out.removeprefix(b"." * 4096), Result(process.returncode, b"", err)


def reading_lines() -> dict[str, bytes]:
    """Command lines that read stdin, with what they read."""
    lines = {}
    for path in WITH_IDS:
        command = next(each for each in COMMANDS if each.path == path)
        has_yes = any(parameter.name == "yes" for parameter in command.command.params)
        words = [path, "-", *(["--yes"] if has_yes else []), READS.get(path, "")]
        lines[" ".join(filter(None, words))] = b"w1\nw2\ngone\n"
    return {**lines, **OTHER_INPUTS}


@pytest.mark.parametrize("line", reading_lines())
class TestStdin:
    def test_all_is_read_of_a_pipe_that_pauses_and_does_not_block(
        self, rwq: Rwq, seed: Callable[[], None], line: str
    ) -> None:
        """With a byte order mark before the text."""
        text = reading_lines()[line]
        seed()
        wanted = rwq.process(*line.split(), stdin=text)
        seed()
        reads, writes = os.pipe()
        os.set_blocking(reads, False)
        process = rwq.start(*line.split(), stdin=reads)
        os.close(reads)
        marked = MARK + text
        half = len(marked) // 2
        for piece in (marked[:2], marked[2:half], marked[half:]):
            time.sleep(0.1)
            os.write(writes, piece)
        os.close(writes)
        out, err = process.communicate(timeout=TIMEOUT_S)
        found = Result(process.returncode, out, err)
        assert (found.code, alike(found.out), alike(found.err)) == (
            wanted.code,
            alike(wanted.out),
            alike(wanted.err),
        )

    def test_a_closed_one_is_an_error(self, rwq: Rwq, seed: Callable[[], None], line: str) -> None:
        """Nothing that was to be read must not look like an empty list."""
        seed()
        found = rwq.shell(f"rwq {line} <&-")
        assert (found.code, found.out) == (2, b"")
        assert "stdin is closed" in found.notes


def test_what_stdin_is_for_is_known() -> None:
    assert len(WITH_IDS) > 7
    assert {"rm", "show", "complete"} <= set(WITH_IDS)
    # A new command has its own line, or needs none.
    assert set(LINES) <= {each.path for each in COMMANDS}


def test_a_stopped_export_is_whole(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(*(b"%05d" % number for number in range(5000)))
    process = rwq.start("export", variables={"PYTHONUNBUFFERED": "1"})
    assert process.stdout is not None
    lines = 0
    while piece := os.read(process.stdout.fileno(), 65536):
        process.send_signal(signal.SIGSTOP)
        lines += piece.count(b"\n")
        process.send_signal(signal.SIGCONT)
    assert process.wait(TIMEOUT_S) == 0
    assert lines == 5001


def test_an_undo_file_without_room_says_what_was_removed(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(*(b"%05d" % number for number in range(18_000)))
    # In units of 1,024 bytes: for some of the batches, and not for all.
    result = rwq.shell("ulimit -f 2700; rwq rm --all --yes")
    left = foreign.raw.llen("jobs:queue")
    assert (result.code, result.text) == (3, "")
    assert 0 < left < 18_000
    done = result.notes.splitlines()[0]
    assert done.startswith(f"removed {18_000 - left:,}; undo file ")
    assert done.endswith("rwq undo puts them back")
    assert "file too large; nothing is removed or changed before it is written: make room" in (
        result.notes
    )


def test_what_several_threads_write_does_not_mix() -> None:
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    writer = Writer(writes)
    lines = [b"%d" % number * 3000 + b"\n" for number in range(4)]

    def write(line: bytes) -> None:
        for _ in range(100):
            writer.write(line)

    threads = [Thread(target=write, args=(line,)) for line in lines]
    for thread in threads:
        thread.start()
    found = b""
    while len(found) < 400 * len(lines[0]) - 65536:
        found += os.read(reads, 4096)
    for thread in threads:
        thread.join()
    closing = Thread(target=lambda: (writer.flush(), os.close(writes)))
    closing.start()
    with open(reads, "rb") as rest:
        found += rest.read()
    closing.join()
    assert sorted(found.splitlines(keepends=True)) == [line for line in lines for _ in range(100)]
