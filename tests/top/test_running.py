"""Commands that run in place of `rwq top`: on the same server, with no password among the words."""

import io
import subprocess
from pathlib import Path
from typing import Any

import pytest
import redis

from rwq_cli.cli.connect import make_command_lines, open_connection
from rwq_cli.cli.options import Duration
from rwq_cli.cli.settings import Settings
from rwq_cli.environment import Environment
from rwq_cli.top.terminal import Action, Runner
from tests.conftest import Foreign
from tests.driver import Rwq, configure


class NoSignal:
    """A guard of a terminal that no signal ends."""

    signal = None
    child = None


def runner_of(rwq: Rwq, **given: Any) -> tuple[Runner, io.BytesIO]:
    """A runner for these global options, and what it writes."""
    shown = io.BytesIO()
    environment = Environment(rwq.variables, io.BytesIO(), shown, io.BytesIO())
    settings = Settings(environment, given)
    lines = make_command_lines(settings, open_connection(settings))
    return Runner(settings, lines, NoSignal()), shown  # type: ignore[arg-type]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[bytes, bytes]]]:
    """The words and variables of what was started; it is replaced by `true`."""
    found: list[tuple[list[str], dict[bytes, bytes]]] = []
    start = subprocess.Popen

    def note(command: list[str], env: dict[bytes, bytes], **streams: Any) -> Any:
        found.append((command, env))
        return start(["true"], **streams)

    monkeypatch.setattr(subprocess, "Popen", note)
    return found


def test_a_password_in_a_url_is_no_argument(
    rwq: Rwq, started: list[tuple[list[str], dict[bytes, bytes]]]
) -> None:
    url = "redis://ann:secret@localhost:1/0"
    run, shown = runner_of(rwq, url=url)
    run(Action("kick", b"jobs"), ["--all"])
    ((command, variables),) = started
    assert not any("secret" in word for word in map(str, command))
    assert variables[b"RWQ_URL"] == url.encode()
    assert b"secret" not in shown.getvalue()


def test_a_context_stays_that_context(
    rwq: Rwq, started: list[tuple[list[str], dict[bytes, bytes]]]
) -> None:
    """Even if another one becomes the current one meanwhile."""
    configure(rwq.home, 'current = "prod"\n[contexts.prod]\nurl = "redis://localhost:1"\n')
    rwq.variables = {**rwq.variables, "RWQ_URL": ""}
    run, _ = runner_of(rwq)
    run(Action("kick", b"jobs", b"a"), [])
    ((command, variables),) = started
    assert command[-7:] == ["-o", "table", "kick", "-q", b"jobs", "--", b"a"]
    assert (variables[b"RWQ_CONTEXT"], b"RWQ_URL" in variables) == (b"prod", False)


def test_options_of_the_run_are_those_of_its_commands(
    rwq: Rwq, started: list[tuple[list[str], dict[bytes, bytes]]], tmp_path: Path
) -> None:
    secret = tmp_path / "password"
    secret.write_text("x\n")
    run, _ = runner_of(
        rwq, password_file=str(secret), write=True, reply_timeout=Duration(9), color="never"
    )
    run(Action("doctor", b"jobs"), ["--fix"])
    words = [str(word) for word in started[0][0]]
    assert words[words.index("-o") :] == [
        *("-o", "table", "--reply-timeout", "9s", "--color", "never", "--write"),
        *("doctor", "-q", "b'jobs'", "--fix"),
    ]
    assert started[0][1][b"RWQ_PASSWORD"] == b"x"


@pytest.mark.parametrize("item_id", [b"-", b"--force", b"a\0b", b"a\nb", b"\xff", b"$(touch x)"])
def test_any_id_reaches_its_item(
    rwq: Rwq, foreign: Foreign, raw: redis.Redis, item_id: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    foreign.buried(item_id)
    run, _ = runner_of(rwq)
    run(Action("kick", b"jobs", item_id), ["-v"])
    assert raw.lrange("jobs:queue", 0, -1) == [item_id]
    assert "kicked 1" in capfd.readouterr().err
