"""`rwq demo` shows the main job, and leaves nothing behind however it ends."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.driver import TIMEOUT_S, until
from tests.servers import ending_with_block

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc")


def start(place: Path, **variables: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "rwq_cli", "demo"],
        env={**os.environ, "TMPDIR": str(place), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


@pytest.fixture
def short_place() -> Iterator[Path]:
    """A unix socket's path is short."""
    with ending_with_block() as (place, _):
        yield place


def servers_below(place: Path) -> list[Path]:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            command = file.read_bytes()
            if os.fsencode(place) in command and b"rwq_cli" not in command:
                found.append(file)
    return found


@pytest.mark.ci
def test_demo_shows_the_main_job_and_cleans_up(short_place: Path, tmp_path: Path) -> None:
    # It knows no context of the user's: these cannot be read.
    contexts = tmp_path / "rwq" / "config.toml"
    contexts.parent.mkdir()
    contexts.write_text("[contexts")
    contexts.chmod(0o600)
    process = start(short_place, XDG_CONFIG_HOME=str(tmp_path))
    output, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0
    commands = re.findall(rb"^\$ (.*)$", output, re.M)
    assert commands == [
        b"cat items.txt",
        b"rwq add -f items.txt --id-from line",
        b"rwq ls",
        b"rwq lease --for 1h",
        b"sh -c 'rwq lease --for 1s -o ids; kill -9 $$'",
        b"rwq leases",
        b"rwq leases",
        b"rwq clean light",
        b"rwq show 'resize dog.png'",
        b"rwq complete 'resize cat.png'",
        b"rwq stats",
    ]
    assert b"\n#  ID  " in output, "a pipe gets the tables, too"
    assert b"\x1b" not in output
    assert b"added 4\n" in output
    assert b"returned 1\n" in output
    assert b"completed 1\n" in output
    assert list(short_place.iterdir()) == []
    assert servers_below(short_place) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing(short_place: Path, number: int) -> None:
    process = start(short_place)
    assert process.stdout is not None
    # In the middle: the first item is leased.
    while b"rwq lease" not in (line := process.stdout.readline()):
        assert line, "it ended before"
    os.killpg(process.pid, number)
    process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == (130 if number == signal.SIGINT else 143)
    until(lambda: servers_below(short_place) == [])
    assert list(short_place.iterdir()) == []
