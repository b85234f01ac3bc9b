"""Every command line that is printed reaches the same server: it has every option that named it."""

import re
import shlex
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from rwq_cli.cli.options import COMMON_NAMES
from tests.conftest import StartServer
from tests.driver import Rwq, configure
from tests.tls import TlsFronts
from tests.verbs import Foreign, fill

# The options that say how the server is reached; the others say what to do there.
OF_THE_SERVER = {"url", "context", "password_file", "tls_ca", "tls_cert", "tls_key", "tls_insecure"}
OTHERS = {
    *("queue", "output", "connect_timeout", "reply_timeout", "patience", "write", "fields"),
    *("sort", "by", "reverse", "color", "quiet", "verbose", "debug"),
}
# Lines that print others.
PRINTING = [
    "show l1 a1 gone",
    "show l1 -o json",
    "doctor --grace 0",
    "lease --id l1 --id a1",
    "touch w1",
    "kick w1",
]
# A line of rwq in prose, in a table or in JSON: up to the end of what belongs to it.
_LINE = re.compile(r"rwq [a-z][^\n\"]*? -q jobs(?: (?:-- )?[\w']+)?")


class Guarded:
    """A server with a password behind TLS."""

    def __init__(self, url: str, options: dict[str, list[str]]) -> None:
        self.url, self.options = url, options


@pytest.fixture
def guarded_by_tls(start_server: StartServer, tmp_path: Path) -> Iterator[Guarded]:
    server = start_server("--requirepass", "pw", password="pw")
    with server.client(password="pw") as raw:
        fill(Foreign(raw))

    def connect() -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(server.socket))
        return connection

    fronts = TlsFronts(tmp_path, asks_clients=True)
    (tmp_path / "pw").write_text("pw\n")
    pem = str(fronts.authority)
    url = f"rediss://127.0.0.1:{fronts.open(connect)}"
    client = ["--tls-cert", pem, "--tls-key", pem, "--password-file", str(tmp_path / "pw")]
    options = {
        "by an authority": ["-u", url, "--tls-ca", pem, *client],
        "insecurely": ["-u", url, "--tls-insecure", *client],
        "by a context": ["-c", "prod", "--tls-ca", pem, *client],
    }
    yield Guarded(url, options)
    fronts.close()


def test_every_option_is_one_of_the_server_or_another() -> None:
    assert OF_THE_SERVER | OTHERS == COMMON_NAMES, "is it carried by what is pasted?"


@pytest.mark.usefixtures("slept_s")
@pytest.mark.parametrize("way", ["by an authority", "insecurely", "by a context"])
@pytest.mark.parametrize("line", PRINTING)
def test_what_is_pasted_has_the_options_of_the_server(
    bare_rwq: Rwq, guarded_by_tls: Guarded, way: str, line: str
) -> None:
    configure(bare_rwq.home, f'[contexts.prod]\nurl = "{guarded_by_tls.url}"\n')
    options = guarded_by_tls.options[way]
    result = bare_rwq(*line.split(), "-q", "jobs", *options)
    assert result.code in (0, 1, 3), result.notes
    text = re.sub(r"\n +", " ", result.text + result.notes)
    lines = [match.group() for match in _LINE.finditer(text)]
    assert lines
    assert [line for line in lines if not {*options} <= {*shlex.split(line)}] == []
