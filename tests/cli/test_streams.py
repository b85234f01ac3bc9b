"""Streams that end, are closed or full, and Ctrl-C: quiet where it is right, and nothing lost."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
import redis

from tests.conftest import Foreign
from tests.driver import TIMEOUT_S, Rwq, next_line


class TestFullDisk:
    def test_a_loop_of_leases_does_not_take_it_for_an_empty_queue(
        self, rwq: Rwq, foreign: Foreign
    ) -> None:
        foreign.waiting(b"a", b"b")
        with open("/dev/full", "wb") as full:
            process = rwq.start("lease", "-o", "data", stdout=full)
        _, err = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 3
        assert b"leased to this session; rwq release --mine puts them back" in err
        assert rwq("release", "--mine").code == 0
        assert rwq("stats", "--fields", "waiting,processing", "-o", "csv").text.endswith("2,0\n")

    def test_a_full_stderr_is_ignored(self, rwq: Rwq, raw: redis.Redis) -> None:
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
    lines.write_bytes(b"".join(b"%d\n" % number for number in range(300_000)))
    process = rwq.start("add", "-f", str(lines), "-o", "ids")
    out, err = interrupted_after(process, 1_000_000)
    printed = out.split()
    assert 20_000 < len(printed) < 300_000
    assert err == f"interrupted: added {len(printed):,}\n".encode()
    assert raw.llen("jobs:queue") == len(printed)


@pytest.mark.parametrize(
    "line",
    ["add --id-from line", "release --force --yes -", "rm --yes -", "show -"],
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
    lines = (
        *("add", "rm --yes -", "edit a --yes -f -", "import -", "complete a --result -"),
        "import - --on-conflict replace --yes",
    )
    result = rwq.shell("\n".join(f'rwq {line} {stdin}; echo "$?"' for line in lines))
    assert result.text.split() == ["2"] * len(lines)
    assert result.notes.count(f"rwq: error: {said}") == len(lines)
    assert foreign.raw.get("jobs:item:a") is not None
