"""Which server and queue a run uses, who says so, and what a context protects."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from rwq_cli.cli.settings import Settings
from rwq_cli.contexts.config import ContextError
from rwq_cli.environment import Environment
from tests.conftest import Foreign, absent, contents
from tests.driver import TIMEOUT_S, Rwq, configure, state_of, until
from tests.servers import PrivateServer

Configured = Callable[..., Settings]
FILE = """
current = "cur"
[contexts.cur]
url = "redis://current"
queue = "of-current"
[contexts.named]
url = "redis://named"
queue = "of-named"
[contexts.variable]
url = "redis://variable"
[contexts.mine]
url = "local:"
"""


@pytest.fixture
def settings(tmp_path: Path) -> Configured:
    configure(tmp_path, FILE)

    def made(given: dict[str, object] | None = None, **variables: str) -> Settings:
        out = io.BytesIO()
        environment = Environment({"HOME": str(tmp_path), **variables}, io.BytesIO(), out, out)
        return Settings(environment, given or {})

    return made


class TestPrecedence:
    def test_each_source_of_the_server_wins_over_later(
        self, settings: Configured, tmp_path: Path
    ) -> None:
        given: dict[str, object] = {"url": "redis://option", "context": "named"}
        variables = {"RWQ_URL": "redis://rwq", "RWQ_CONTEXT": "variable"}
        variables["REDIS_URL"] = "redis://redis"
        seen = []
        for drop in ("url", "context", "RWQ_URL", "RWQ_CONTEXT", "current", "REDIS_URL", ""):
            seen.append(settings(given, **variables).server[:2])
            given.pop(drop, None)
            variables.pop(drop, None)
            if drop == "current":
                configure(tmp_path, FILE.replace('current = "cur"', ""))
        assert seen == [
            ("redis://option", "-u"),
            ("redis://named", "-c"),
            ("redis://rwq", "RWQ_URL"),
            ("redis://variable", "RWQ_CONTEXT"),
            ("redis://current", "the current context"),
            ("redis://redis", "REDIS_URL"),
            ("redis://localhost:6379/0", "default"),
        ]

    def test_the_sources_of_the_queue_in_their_order(self, settings: Configured) -> None:
        context, variable = {"context": "named"}, {"RWQ_QUEUE": "b"}
        runs = [settings({"queue": ["a"], **context}, **variable), settings(context, **variable)]
        runs += [settings(context), settings({})]
        sources = [(run.queue, run.queue_origin) for run in runs]
        assert sources[:2] == [(b"a", "-q"), (b"b", "RWQ_QUEUE")]
        assert sources[2:] == [(b"of-named", "context named"), (b"of-current", "context cur")]

    def test_a_url_does_not_take_the_queue_of_a_context(self, settings: Configured) -> None:
        assert settings({"url": "redis://current"}).queues == []

    def test_a_broken_file_is_an_error_of_whoever_needs_it(
        self, settings: Configured, tmp_path: Path
    ) -> None:
        configure(tmp_path, "[contexts")
        assert settings({"url": "redis://a"}).server.url == "redis://a"
        for given in ({}, {"context": "named"}):
            with pytest.raises(ContextError, match="is not TOML"):
                _ = settings(given).server


@pytest.mark.parametrize(
    ("name", "urls"),
    [
        ("named", ["redis://named:6379/0", "rediss://ops:pw@named"]),
        ("mine", ["local:"]),
        (None, ["redis://named/1", "redis://other", "local:/elsewhere", "http://"]),
    ],
)
def test_the_context_of_its_address_guards_a_url(
    settings: Configured, name: str | None, urls: list[str]
) -> None:
    runs = [run for url in urls for run in (settings({"url": url}), settings(RWQ_URL=url))]
    guards = [run.protecting_context for run in runs]
    assert [guard and guard.name for guard in guards] == [name, name] * len(urls)


def test_a_read_only_wait_promotes_nothing(
    rwq: Rwq, server: PrivateServer, foreign: Foreign
) -> None:
    configure(rwq.home, f'[contexts.prod]\nurl = "{server.url}"\nread_only = true\n')
    foreign.delayed(b"a", due_ms=1)
    # The time is for the connection, too.
    lines = ("wait --timeout 300ms", "result a --timeout 300ms")
    assert [rwq(*line.split()).code for line in lines] == [1, 1]
    assert foreign.raw.zcard("jobs:delayed") == 1
    rwq.start("wait", "--write")
    until(lambda: foreign.raw.zcard("jobs:delayed") == 0)


def test_the_password_command_is_run_to_connect(bare_rwq: Rwq, guarded: PrivateServer) -> None:
    configure(
        bare_rwq.home,
        f'[contexts.a]\nurl = "{guarded.url}"\n'
        f'password_command = "echo x >> {bare_rwq.home}/runs; echo hunter2"\n',
    )
    runs = bare_rwq.home / "runs"
    assert [bare_rwq("context", *words).code for words in (["list"], ["show", "a"])] == [0, 0]
    assert bare_rwq("add", "-c", "a").code == 2
    assert not runs.exists()
    assert bare_rwq("stats", "-c", "a", "-q", "jobs").code == 0
    assert runs.read_text() == "x\n"


def test_a_signal_ends_the_password_command(bare_rwq: Rwq) -> None:
    pid = bare_rwq.home / "pid"
    command = f"echo $$ > {pid}; sleep 3600; echo x"
    context = f'[contexts.a]\nurl = "redis://a"\npassword_command = "{command}"\n'
    configure(bare_rwq.home, context)
    process = bare_rwq.start("stats", "-c", "a", "-q", "jobs")
    until(lambda: pid.exists() and pid.read_text().endswith("\n"))
    process.terminate()
    assert process.communicate(timeout=TIMEOUT_S) == (b"", b"")
    assert process.returncode == 143
    assert state_of(int(pid.read_text())) in ("", "Z")


def test_rwq_password_is_not_sent_to_a_context(bare_rwq: Rwq, guarded: PrivateServer) -> None:
    configure(bare_rwq.home, f'[contexts.a]\nurl = "{guarded.url}"\n')
    variables = {"RWQ_PASSWORD": "hunter2"}
    words = ("stats", "-q", "jobs")
    assert bare_rwq(*words, "-u", guarded.url, variables=variables).code == 0
    refused = bare_rwq(*words, "-c", "a", variables=variables)
    assert refused.code == 69
    assert refused.notes.endswith("; check the password_command or password_file of context a\n")
    wrong = bare_rwq(*words, "-u", f"unix://:wrong@{guarded.socket}")
    assert (wrong.code, wrong.text, "wrong@" in wrong.notes) == (69, "", False)
    said = f"rwq: error: unix://:***@{guarded.socket} rejected the pass"
    assert wrong.notes.startswith(said)
    assert wrong.notes.endswith("; give it in RWQ_PASSWORD or with --password-file\n")


def test_a_password_file_of_the_line_comes_first(bare_rwq: Rwq, guarded: PrivateServer) -> None:
    configure(bare_rwq.home, f'[contexts.a]\nurl = "{guarded.url}"\npassword_command = "exit 1"\n')
    (bare_rwq.home / "pw").write_text("hunter2\n")
    words = ("stats", "-q", "jobs", "-c", "a", "--password-file", str(bare_rwq.home / "pw"))
    assert bare_rwq(*words).code == 0
    notes = bare_rwq(*words, "-v").notes
    assert notes == (
        f"server {guarded.url} (-c, context a)\npassword (--password-file)\n"
        f"output table (default)\nqueue jobs (-q)\n{absent('a')}"
    )


def test_without_a_home_for_undo_nothing_changes(
    rwq: Rwq, foreign: Foreign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user ID without an account and without HOME, as in a container."""

    def no_entry(_: int) -> None:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", no_entry)
    del rwq.variables["HOME"]
    foreign.waiting(b"a")
    before = contents(foreign.raw)

    def refused(path: str, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    # Root may make this directory.
    monkeypatch.setattr("os.mkdir", refused)
    result = rwq("rm", "a", "--yes")
    assert (result.code, result.text) == (70, "")
    assert "cannot write the undo file /nonexistent/" in result.notes
    assert "name a directory in RWQ_UNDO_DIR" in result.notes
    assert contents(foreign.raw) == before
