"""Every command, whatever its streams are like: all of it arrives and is read, or an error."""

import fcntl
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import BinaryIO, cast

import pytest

from rwq_cli.descriptors import Reader, Writer
from tests.conftest import Foreign
from tests.driver import TIMEOUT_S, Result, Rwq
from tests.verbs import COMMANDS, LINES, VERBS, fill, has_option, words_of

MARK = b"\xef\xbb\xbf"
FULL = b"cannot write the output: no space left on device"
# What these need besides the IDs on stdin.
MORE = {"mv": ["--to", "other"]}
OTHER_INPUTS = {
    "add --id-from line": b"one\ntwo\nthree\n",
    "add --id-from line --reconnect 1m": b"one\ntwo\n",
    "add --format jsonl -o ids": b'{"data": 1, "id": "j1"}\n{"data": 2, "id": "j2"}\n',
    "import -": VERBS["import"].stdin,
}

pytestmark = pytest.mark.usefixtures("slept_s")


def alike(result: Result) -> tuple[int, bytes, bytes]:
    """A result without what differs from run to run: times, random IDs, names of files."""
    pattern = rb"[0-9a-f]{32}|[0-9]+(\.[0-9]+)?(ms|s|m|h)?( ago)?|just now"
    return result.code, *(re.sub(pattern, b"#", text) for text in (result.out, result.err))


def begin(rwq: Rwq, foreign: Foreign) -> None:
    """Make the server and the home as they are before each run."""
    fill(foreign)
    with suppress(FileNotFoundError):
        (rwq.home / ".config" / "rwq" / "config.toml").unlink()


class SlowlyRead(Writer):
    """A stdout whose reader begins a while after the first flush."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self.was_flushed = Event()

    def flush(self) -> None:
        self.was_flushed.set()
        super().flush()


@contextmanager
def slow_pipe(found: bytearray) -> Iterator[SlowlyRead]:
    """A pipe that does not block and is full at first; what is written is found at the end."""
    reads, writes = os.pipe()
    fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writes, False)
    os.write(writes, b"." * 4096)

    writer = SlowlyRead(writes)

    def read() -> None:
        # What does not fit into the buffer is written before.
        writer.was_flushed.wait(1)
        time.sleep(0.005)
        with open(reads, "rb") as reader:
            found.extend(reader.read()[4096:])

    reading = Thread(target=read)
    reading.start()
    yield writer
    os.close(writes)
    writer.was_flushed.set()
    reading.join()


def into(rwq: Rwq, path: str, *options: str, to: Writer) -> Result:
    """Run the line of a command with this stdout, as the program opens it."""
    stdout = cast(BinaryIO, to)
    return rwq(*words_of(path, *options), stdin=VERBS[path].stdin, stdout=stdout)


@pytest.mark.parametrize("path", ["export", *(path for path in LINES if path != "export")])
def test_all_that_is_written_arrives_or_is_an_error(rwq: Rwq, foreign: Foreign, path: str) -> None:
    options = ["-o", "jsonl"] if has_option(path, "--dry-run") else []
    begin(rwq, foreign)
    wanted = rwq(*words_of(path, *options), stdin=VERBS[path].stdin)
    begin(rwq, foreign)
    arrived = bytearray()
    with slow_pipe(arrived) as pipe:
        found = into(rwq, path, *options, to=pipe)
    assert alike(Result(found.code, bytes(arrived), found.err)) == alike(wanted)

    begin(rwq, foreign)
    with open("/dev/full", "wb", buffering=0) as full:
        found = into(rwq, path, *options, to=Writer(full.fileno()))
    assert found.code == (3 if wanted.out else wanted.code)
    assert not wanted.out or FULL in found.err
    assert b"this is a bug" not in found.err

    begin(rwq, foreign)
    reads, writes = os.pipe()
    os.close(reads)
    found = into(rwq, path, *options, to=Writer(writes))
    os.close(writes)
    assert found.code in (0, wanted.code)
    assert b"error" not in found.err or alike(found)[2] == alike(wanted)[2]


def reading_lines() -> dict[str, bytes]:
    """Command lines that read stdin, with what they read."""
    lines = dict(OTHER_INPUTS)
    for path, command in COMMANDS.items():
        takes = [each for each in command.command.params if each.param_type_name == "argument"]
        # `edit -` has no stdin left for an editor.
        if any(each.name == "ids" for each in takes) and path != "edit":
            yes = ["--yes"] if has_option(path, "--yes") else []
            lines[" ".join([path, "-", *yes, *MORE.get(path, [])])] = b"w1\nw2\ngone\n"
    return lines


@pytest.mark.parametrize("line", reading_lines())
def test_all_is_read_of_a_pipe_that_pauses(rwq: Rwq, foreign: Foreign, line: str) -> None:
    """With a byte order mark before the text."""
    text = reading_lines()[line]
    begin(rwq, foreign)
    wanted = rwq(*line.split(), stdin=text)
    begin(rwq, foreign)
    reads, writes = os.pipe()
    os.set_blocking(reads, False)
    marked = MARK + text
    half = len(marked) // 2

    def write() -> None:
        for piece in (marked[:2], marked[2:half], marked[half:]):
            time.sleep(0.02)
            os.write(writes, piece)
        os.close(writes)

    writing = Thread(target=write)
    writing.start()
    found = rwq(*line.split(), stdin=cast(BinaryIO, Reader(reads)))
    writing.join()
    os.close(reads)
    assert alike(found) == alike(wanted)


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
    assert lines == 5002


@pytest.mark.ci
def test_a_full_undo_file_says_what_was_removed(rwq: Rwq, foreign: Foreign) -> None:
    foreign.waiting(*(b"%05d" % number for number in range(40_000)))
    # In units of 1,024 bytes: for some of the batches, and not for all.
    result = rwq.shell("ulimit -f 5000; rwq rm --all --yes")
    left = foreign.raw.llen("jobs:queue")
    assert (result.code, result.text) == (70, "")
    assert 0 < left < 40_000
    done = result.notes.splitlines()[0]
    assert done.startswith(f"removed {40_000 - left:,}; undo file ")
    assert done.endswith("rwq undo puts them back")
    assert "file too large; nothing is removed or changed before it is written: make room" in (
        result.notes
    )
