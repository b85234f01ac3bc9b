"""`rwq context`: what each subcommand says and writes."""

from pathlib import Path

import pytest

from tests.conftest import Foreign, contents
from tests.driver import Rwq, configure
from tests.servers import PrivateServer
from tests.support import snapshot


@pytest.fixture
def config(bare_rwq: Rwq) -> Path:
    return bare_rwq.home / ".config" / "rwq" / "config.toml"


@pytest.fixture
def three(bare_rwq: Rwq, config: Path) -> Rwq:
    configure(
        bare_rwq.home,
        'current = "dev"\n'
        '[contexts.prod]\nurl = "redis://ops:hunter2@db1/0"\ncolor = "red"\nprotect = "type"\n'
        '[contexts.dev]\nurl = "local:"\nqueue = "jobs"\n'
        '[contexts.eu]\nurl = "redis://db2"\nread_only = true\npassword_command = "pass eu"\n',
    )
    assert config.exists()
    return bare_rwq


def test_there_may_be_no_contexts(bare_rwq: Rwq) -> None:
    assert bare_rwq("context", "list", "-o", "json").json == []
    assert bare_rwq("context", "list", "-o", "table").text == (
        "No contexts; rwq context set NAME -u URL creates one.\n"
    )


def test_the_current_is_marked_without_its_password(three: Rwq) -> None:
    assert three("context", "list", "-o", "table").lines == snapshot(
        [
            "NAME  CURRENT  SERVER                 QUEUE  PASSWORD  READ ONLY  PROTECT",
            "─" * 73,
            "prod           redis://ops:***@db1/0  -      url       no         type",
            "dev   *        local:                 jobs   -         no         none",
            "eu             redis://db2            -      command   yes        none",
        ]
    )


class TestShow:
    def test_a_context_for_people(self, three: Rwq) -> None:
        assert three("context", "show", "eu", "-o", "table").lines == snapshot(
            [
                "eu",
                "   server  redis://db2",
                "    queue  none",
                " password  printed by pass eu",
                "read only  yes: changes need --write",
                "  protect  none: destructive commands ask unless --yes is given",
            ]
        )

    def test_without_a_name_it_is_the_one_in_use(self, three: Rwq) -> None:
        assert three("context", "show", "-o", "json").json["name"] == "dev"
        assert three("context", "show", "-c", "eu", "-o", "json").json["name"] == "eu"

    def test_no_context_may_be_in_use(self, three: Rwq) -> None:
        assert three("context", "show", "-u", "redis://:pw@x").as_tuple() == (
            1,
            "",
            "rwq: error: no context is in use: the server is redis://:***@x (-u); "
            "rwq context list shows all contexts\n",
        )


class TestSet:
    def test_every_setting_is_written(self, bare_rwq: Rwq, config: Path) -> None:
        words = ("context", "set", "prod", "-u", "redis://db1", "-q", "jobs", "--name-color", "red")
        more = ("--read-only", "--protect", "type", "--password-command", "pass show x")
        result = bare_rwq(*words, *more, "-o", "json")
        assert (result.code, result.notes) == (0, "")
        assert config.read_text() == (
            '[contexts.prod]\nurl = "redis://db1"\nqueue = "jobs"\n'
            'password_command = "pass show x"\ncolor = "red"\nread_only = true\nprotect = "type"\n'
        )
        assert result.json["password_command"] == "pass show x"
        result = bare_rwq("context", "set", "prod", "--no-read-only")
        assert result.as_tuple() == (0, "set context prod: redis://db1\n", "")

    def test_a_password_in_the_url_is_noted(self, bare_rwq: Rwq, config: Path) -> None:
        result = bare_rwq("context", "set", "a", "-u", "redis://:hunter2@db1")
        assert result.notes == (
            f"note: the password is in {config}; --password-command keeps it out of there\n"
        )
        assert "hunter2" not in result.text

    @pytest.mark.parametrize(
        ("line", "error"),
        {
            "new": "nothing to set",
            "new -q jobs": "context new in ",
            "new -u http://db1": "not a server URL",
            "new -u redis://a -q a -q b": "a context has one queue",
            "dev -q x --unset queue": "queue is both set and unset",
            "dev --unset x": "there is no setting 'x'; known settings: url, queue",
            "dev --unset url": "has no url",
            "dev --name-color pink": "is not one of 'red'",
            "prod --password-command x": "keep one of them",
            "- -u redis://a": "a context cannot be named '-'",
        }.items(),
    )
    def test_what_cannot_be_is_refused(
        self, three: Rwq, config: Path, line: str, error: str
    ) -> None:
        before = config.read_text()
        result = three("context", "set", *line.split())
        assert (result.code, result.text, error in result.notes) == (2, "", True)
        assert "hunter2" not in result.notes
        assert config.read_text() == before


def test_the_next_command_goes_there(three: Rwq) -> None:
    assert three("context", "use", "eu").as_tuple() == (
        0,
        "eu is the current context: redis://db2\n",
        "",
    )
    assert three("context", "show", "-o", "json").json["name"] == "eu"
    assert three("context", "use", "-", "-o", "json").json["name"] == "dev"


@pytest.mark.parametrize("variable", ["RWQ_URL", "RWQ_CONTEXT"])
def test_what_goes_before_the_current_one_is_said(three: Rwq, variable: str) -> None:
    variables = {variable: "redis://db9" if variable == "RWQ_URL" else "dev"}
    notes = three("context", "use", "eu", variables=variables).notes
    assert notes == (
        f"note: {variable} is set and goes before the current context: unset {variable}\n"
    )


def test_contexts_are_removed(three: Rwq) -> None:
    assert three("context", "rm", "dev", "eu").as_tuple() == (
        0,
        "removed context dev\nremoved context eu\n",
        "note: dev was the current context; there is none now\n",
    )
    assert three("context", "list", "-o", "ids").text == "prod\n"


def test_a_healthy_server(rwq: Rwq, server: PrivateServer, foreign: Foreign) -> None:
    configure(rwq.home, f'[contexts.a]\nurl = "{server.url}"\n')
    before = contents(foreign.raw)
    found = rwq("context", "check", "a", "-o", "json").json
    numbers = ("latency_ms", "memory_used_bytes", "clients", "clients_limit")
    # No reply is waited for so long.
    assert found["latency_ms"] < 60_000
    assert all(found.pop(name) > 0 for name in numbers)
    assert all(found.pop(name) >= 0 for name in ("uptime_seconds", "flushes", "evicted_keys"))
    assert (found.pop("memory_limit_bytes"), found.pop("eviction")) == (0, "noeviction")
    assert found.pop("last_save_age_seconds") is None
    assert found.pop("version").split()[0] in ("Valkey", "Redis")
    assert found.pop("no_touch") in (True, False)
    assert found.pop("denied") in ([], None)
    assert found == {
        "server": server.url,
        "context": "a",
        "queue": "jobs",
        "queue_b64": None,
        "user": "default",
        "times": True,
        "no_times_because": None,
        "writes": True,
        "no_writes_because": None,
        "undo": True,
        "no_undo_because": None,
    }
    assert contents(foreign.raw) == before
