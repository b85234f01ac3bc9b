"""`rwq local`: its records, tables and exit codes."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rwq_cli.local.server import AOF_CUT, LocalServer
from tests.driver import Result, Rwq
from tests.local.conftest import NewServer
from tests.local.helpers import pid_of


@pytest.fixture
def rwq(bare_rwq: Rwq, environ: dict[str, str]) -> Rwq:
    bare_rwq.variables = {**bare_rwq.variables, **environ}
    return bare_rwq


def stopped(server: LocalServer, *, aof_bytes: int | None = None) -> dict[str, Any]:
    return {
        "running": False,
        "pid": None,
        "url": f"unix://{server.directory}/valkey.sock",
        "directory": str(server.directory),
        "server": None,
        "used_memory_bytes": None,
        "aof_bytes": aof_bytes,
        "aof_cut": False,
        "uptime_seconds": None,
    }


def test_a_server_is_started_once_and_stopped_once(rwq: Rwq, local_server: LocalServer) -> None:
    def run(verb: str) -> Result:
        return rwq("local", verb, str(local_server.directory), "-o", "json")

    started = run("start")
    assert (started.code, started.notes) == (0, "")
    assert list(started.json) == list(stopped(local_server))
    assert started.json["running"] is True
    assert started.json["pid"] == pid_of(local_server)
    again = [(result.code, result.json["pid"]) for result in map(run, ("start", "status"))]
    assert again == [(0, started.json["pid"])] * 2

    record = stopped(local_server, aof_bytes=local_server.status().aof_bytes)
    stops = [(result.code, result.notes, result.json) for result in (run("stop"), run("stop"))]
    assert stops == [(0, "", record), (1, "", record)]


def test_a_file_that_a_crash_has_cut_is_told(rwq: Rwq, local_server: LocalServer) -> None:
    url = f"local:{local_server.directory}"
    assert rwq("add", "-u", url, "-q", "jobs", "one", "two").code == 0
    local_server.kill()
    (file,) = (local_server.directory / "appendonlydir").glob("*.incr.aof")
    os.truncate(file, file.stat().st_size - 20)
    start = rwq("local", "start", str(local_server.directory), "-o", "table")
    assert (start.code, start.notes) == (0, f"rwq: {AOF_CUT}\n")
    assert AOF_CUT in rwq("doctor", "-u", url, "-q", "jobs").notes


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a small disk")
def test_a_server_with_unwritten_data_is_not_stopped(
    rwq: Rwq, tmp_path: Path, new_server: NewServer
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    if subprocess.run(mount, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        server = new_server(disk / "db")
        words = ("-u", f"local:{disk / 'db'}", "-q", "jobs")
        while rwq("add", *words, "--format", "raw", stdin=b"x" * 900_000).code == 0:
            pass
        stop = rwq("local", "stop", str(disk / "db"))
        assert (stop.code, "make room on the disk" in stop.notes) == (69, True)
        assert server.status().running
        server.kill()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_status_of_a_stopped_server_exits_with_1(rwq: Rwq, local_server: LocalServer) -> None:
    directory = str(local_server.directory)
    result = rwq("local", "status", directory, "-o", "json")
    assert (result.code, result.notes, result.json) == (1, "", stopped(local_server))
    table = rwq("local", "status", directory, "-o", "table")
    assert table.code == 1
    assert table.lines[0] == "running  no"
    assert table.lines[-1].endswith("/data")


def test_the_directory_is_of_the_url_or_the_argument(rwq: Rwq, new_server: NewServer) -> None:
    in_url, argument = new_server(rwq.home / "url"), new_server(rwq.home / "argument")
    words = ("-u", f"local:{in_url.directory}", "local", "status", "-o", "json")
    assert rwq(*words).json == stopped(in_url)
    assert rwq(*words, str(argument.directory)).json == stopped(argument)
