"""Commands in the output can be pasted, and summaries name the server and the queue."""

import shutil
import subprocess

import pytest

from rwq_cli.core.server.address import Server, connect
from rwq_cli.views.command_lines import redis_cli, shell_word
from tests.conftest import Foreign
from tests.driver import Rwq, configure
from tests.servers import PrivateServer

ENVIRONMENT = {"RWQ_URL": "", "RWQ_QUEUE": ""}


@pytest.fixture
def item(foreign: Foreign) -> None:
    foreign.waiting(b"a")


def commands(rwq: Rwq, *words: str, variables: dict[str, str] | None = None) -> list[str]:
    found = rwq("show", "a", "-o", "json", *words, variables=variables).json["commands"]
    assert isinstance(found, list)
    return found


@pytest.mark.usefixtures("item")
class TestCommands:
    def test_a_context_is_carried(self, rwq: Rwq, server: PrivateServer) -> None:
        configure(
            rwq.home, f'current = "prod"\n[contexts.prod]\nurl = "{server.url}"\nqueue = "jobs"\n'
        )
        assert commands(rwq, "-c", "prod")[0] == "rwq bury -c prod -q jobs a"
        assert commands(rwq, variables=ENVIRONMENT)[0] == "rwq bury -c prod -q jobs a"


class TestPassword:
    @pytest.fixture
    def url(self, guarded: PrivateServer) -> str:
        with guarded.client(password="hunter2") as client:
            Foreign(client).waiting(b"a")
        return f"unix://:hunter2@{guarded.socket}?db=0"

    NOTE = (
        "note: the commands shown do not have the password; "
        "give it in RWQ_PASSWORD or with --password-file\n"
    )

    def test_it_is_left_out_with_a_hint(self, bare_rwq: Rwq, url: str) -> None:
        result = bare_rwq("show", "a", "-q", "jobs", "-u", url, "-o", "table")
        bare = url.replace(":hunter2@", "")
        assert f"rwq bury -u '{bare}' -q jobs a" in result.text
        assert "hunter2" not in result.text
        assert self.NOTE in result.notes
        words = ("show", "a", "-q", "jobs", "-u", bare)
        assert self.NOTE not in bare_rwq(*words, variables={"RWQ_PASSWORD": "hunter2"}).notes


@pytest.mark.usefixtures("item")
def test_a_context_is_named(rwq: Rwq, server: PrivateServer) -> None:
    configure(rwq.home, f'[contexts.prod]\nurl = "{server.url}"\nqueue = "jobs"\n')
    for line, summary in (
        ("add x --id x", "added 1 (jobs on prod)"),
        ("touch a", "not leased 1 (jobs on prod)"),
        ("bury a", "buried 1 (jobs on prod)"),
        ("kick a", "kicked 1 (jobs on prod)"),
        ("rm a --dry-run", "dry run: would remove 1 (jobs on prod)"),
        ("rm a --yes", "removed 1 (jobs on prod); undo file "),
    ):
        assert summary in rwq(*line.split(), "-c", "prod", variables=ENVIRONMENT).notes


@pytest.mark.parametrize(
    ("url", "command"),
    [
        ("redis://db1", "redis-cli -h db1 -p 6379"),
        ("redis://ops:hunter2@db1:7000/2", "redis-cli -h db1 -p 7000 -n 2"),
        ("rediss://db1/0", "redis-cli -h db1 -p 6379 --tls"),
        ("redis://[::1]:7000", "redis-cli -h ::1 -p 7000"),
        ("unix:///run/redis.sock", "redis-cli -s /run/redis.sock"),
        ("unix:///run/my%20redis.sock?db=1", "redis-cli -s '/run/my redis.sock' -n 1"),
    ],
)
def test_redis_cli_is_sent_to_the_same_server(url: str, command: str) -> None:
    assert redis_cli(connect(Server(url)).address) == command


@pytest.mark.parametrize("shell", ["dash", "bash", "zsh"])
def test_a_word_is_read_by_any_shell_as_its_bytes(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")
    raw = [b"a", b"it's", b"\xff%s!$x`\\'\"", *(b"-%c0" % byte for byte in range(1, 256))]
    # dash cannot read what ends a line.
    raw += [b"-%c\n" % byte for byte in range(1, 256)] if shell != "dash" else []
    words = list(map(shell_word, raw))
    assert all(word.isprintable() for word in words)
    done = subprocess.run([shell, "-c", f"printf '%s.' {' '.join(words)}"], stdout=subprocess.PIPE)
    assert done.stdout == b"".join(b"%b." % word for word in raw)
