"""`rwq local`: its records, tables and exit codes."""

from typing import Any

import pytest

from rwq_cli.local.server import LocalServer
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
    for verb in ("start", "status"):
        again = run(verb)
        assert (again.code, again.json["pid"]) == (0, started.json["pid"])

    aof_bytes = local_server.status().aof_bytes
    for code in (0, 1):
        result = run("stop")
        assert (result.code, result.notes) == (code, "")
        assert result.json == stopped(local_server, aof_bytes=aof_bytes)


def test_status_of_a_stopped_server_exits_with_1(rwq: Rwq, local_server: LocalServer) -> None:
    directory = str(local_server.directory)
    result = rwq("local", "status", directory, "-o", "json")
    assert (result.code, result.notes, result.json) == (1, "", stopped(local_server))
    table = rwq("local", "status", directory, "-o", "table")
    assert table.code == 1
    assert table.lines[0] == "running  no"
    assert table.lines[-1].endswith(" (-)")


def test_the_directory_is_of_the_url_or_the_argument(rwq: Rwq, new_server: NewServer) -> None:
    in_url, argument = new_server(rwq.home / "url"), new_server(rwq.home / "argument")
    words = ("-u", f"local:{in_url.directory}", "local", "status", "-o", "json")
    assert rwq(*words).json == stopped(in_url)
    assert rwq(*words, str(argument.directory)).json == stopped(argument)
