"""The data directory: its default, its permissions and its socket."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from rwq_cli.core.errors import LocalServerError
from rwq_cli.local.server import LocalServer, default_directory
from tests.local.conftest import NewServer
from tests.local.helpers import client, pid_of


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_the_default_directory_follows_xdg() -> None:
    states = ("/state", "", "relative")
    environs = [*({"XDG_STATE_HOME": state, "HOME": "/home/me"} for state in states), {}]
    home = Path("/home/me/.local/state")
    parents = [Path("/state"), home, home, Path.home() / ".local/state"]
    assert [*map(default_directory, environs)] == [parent / "rwq/local" for parent in parents]


def test_the_directory_and_its_files_are_private(local_server: LocalServer) -> None:
    local_server.ensure_running()
    assert mode_of(local_server.directory) == 0o700
    assert mode_of(local_server.directory / "valkey.sock") == 0o700
    assert [file for file in local_server.directory.rglob("*") if mode_of(file) & 0o077] == []


def test_an_open_directory_of_other_files_is_refused(
    local_server: LocalServer,
) -> None:
    local_server.directory.mkdir()
    local_server.directory.chmod(0o755)
    (local_server.directory / "letter").touch()
    with pytest.raises(LocalServerError, match="is open to other users and holds other files"):
        local_server.ensure_running()
    assert mode_of(local_server.directory) == 0o755
    assert os.listdir(local_server.directory) == ["letter"]


@pytest.mark.parametrize("verb", ["ensure_running", "stop", "status"])
def test_a_directory_of_another_user_is_refused(
    local_server: LocalServer, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_server.directory.mkdir()
    other_uid = os.geteuid() + 1
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: other_uid)
        with pytest.raises(LocalServerError, match="belongs to another user"):
            getattr(local_server, verb)()


@pytest.mark.parametrize("name", ["two words", 'it\'s "quoted"', "Größe%s", "--port 7", "a%41?b#c"])
def test_a_directory_can_have_a_strange_name(
    new_server: NewServer, tmp_path: Path, name: str
) -> None:
    server = new_server(tmp_path / name)
    server.ensure_running()
    assert (tmp_path / name / "valkey.sock").is_socket()
    with client(server) as connection:
        assert connection.ping()


# A directory whose path is too long for a unix socket


@pytest.fixture
def long_server(new_server: NewServer, tmp_path: Path) -> Iterator[LocalServer]:
    server = new_server(tmp_path / ("d" * 120))
    yield server
    server.stop()
    assert not socket_of(server).parent.exists()


def socket_of(server: LocalServer) -> Path:
    return Path(server.url.removeprefix("unix://"))


def test_a_long_path_gets_a_short_socket(
    long_server: LocalServer, new_server: NewServer, tmp_path: Path
) -> None:
    place = socket_of(long_server).parent
    assert not place.exists()
    long_server.ensure_running()
    assert (place.parent, place.name[:4]) == (Path("/tmp"), "rwq-")
    assert mode_of(place) == 0o700
    elsewhere = new_server(long_server.directory, TMPDIR=str(tmp_path))
    elsewhere.ensure_running()
    assert elsewhere.url == long_server.url
    assert pid_of(elsewhere) == pid_of(long_server)
    assert elsewhere.stop() is True
    assert sorted(os.listdir(long_server.directory))[-2:] == ["lock", "server.log"]


@pytest.mark.parametrize("verb", ["ensure_running", "status"])
def test_a_short_directory_of_another_is_refused(
    new_server: NewServer, tmp_path: Path, verb: str
) -> None:
    server = new_server(tmp_path / ("d" * 120))
    place = socket_of(server).parent
    try:
        place.symlink_to(tmp_path)
        with pytest.raises(LocalServerError, match="is not a directory"):
            getattr(server, verb)()
    finally:
        place.unlink()
