"""TLS on a server that speaks it: each failure by its cause; options for the server with TLS."""

import shutil
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Foreign
from tests.driver import Rwq, until

SERVER = Path("/usr/bin/redis-server")
pytestmark = pytest.mark.skipif(
    not (SERVER.exists() and shutil.which("openssl")), reason="no server with TLS, or no openssl"
)
Tls = Callable[..., str]
CLIENT = "--tls-cert client.crt --tls-key client.key"


def make_certificate(folder: Path, name: str, host: str) -> None:
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30"
    files = ("-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={host}")
    line = [*words.split(), *files, "-addext", f"subjectAltName=DNS:{host}"]
    subprocess.run(line, cwd=folder, check=True, capture_output=True)


@pytest.fixture
def tls(rwq: Rwq, monkeypatch: pytest.MonkeyPatch) -> Tls:
    """Start a server with a certificate; return its URL."""
    monkeypatch.chdir(rwq.home)
    for name, host in {"good": "localhost", "other": "db9", "client": "c", "client2": "d"}.items():
        make_certificate(rwq.home, name, host)

    def start(certificate: str = "good", clients: str = "no") -> str:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        files = ("--tls-cert-file", f"{certificate}.crt", "--tls-key-file", f"{certificate}.key")
        more = ("--tls-ca-cert-file", "client.crt", "--tls-auth-clients", clients, "--save", "")
        words = ("--port", "0", "--tls-port", port)
        rwq.start(*words, *files, *more, command=[str(SERVER)], stdout=subprocess.DEVNULL)
        until(lambda: socket.socket().connect_ex(("127.0.0.1", int(port))) == 0)
        return f"rediss://localhost:{port}"

    return start


@pytest.mark.parametrize(
    ("certificate", "clients", "options", "said"),
    [
        ("good", "no", "", "its certificate is not signed by a known authority; give the "),
        ("good", "no", "--tls-ca other.crt", "its certificate is not signed by a known authority"),
        ("other", "no", "--tls-ca other.crt", "its certificate is for another host; "),
        ("good", "yes", "--tls-ca good.crt", "it wants a client certificate; "),
        ("good", "yes", f"--tls-ca good.crt {CLIENT}2.key", "no such file"),
        (
            *("good", "yes", "--tls-ca good.crt --tls-cert client.crt --tls-key client2.key"),
            "the client's key does not fit its certificate; ",
        ),
        (
            *("good", "yes", "--tls-ca good.crt --tls-cert client2.crt --tls-key client2.key"),
            "it does not accept the client certificate; ",
        ),
        (
            "good",
            "yes",
            "--tls-ca good.crt --tls-key client.key",
            "a TLS key needs its certificate",
        ),
        ("good", "yes", f"--tls-ca good.crt {CLIENT}", ""),
    ],
)
def test_each_failure_names_its_cause(
    rwq: Rwq, tls: Tls, certificate: str, clients: str, options: str, said: str
) -> None:
    result = rwq("add", "x", "-u", tls(certificate, clients), *options.split())
    assert (said in result.notes, result.code in ((2, 69) if said else (0,))) == (True, True)


def test_a_pass_phrase_is_not_read_from_stdin(rwq: Rwq, tls: Tls) -> None:
    words = "openssl ec -in client.key -aes256 -passout pass:hunter2 -out encrypted.key"
    subprocess.run(words.split(), check=True, capture_output=True)
    url, options = (
        tls(clients="yes"),
        f"--tls-ca good.crt {CLIENT}".replace("client.key", "encrypted.key"),
    )
    result = rwq("add", "-u", url, *options.split(), stdin=b"hunter2\nb\n")
    assert (result.code, "the client's key is encrypted" in result.notes) == (2, True)
    line = ("add", "-u", f"{url}?ssl_password=hunter2", *options.split())
    assert rwq(*line, stdin=b"a\nb\n").notes.startswith("added 2")


def test_options_are_for_the_server_with_tls(rwq: Rwq, tls: Tls, foreign: Foreign) -> None:
    plain, url, ca = rwq.variables["RWQ_URL"], tls(), ("--tls-ca", "good.crt")
    foreign.waiting(b"a")
    assert rwq("mv", "a", "--to", "b", "--to-url", url, *ca, "--yes").code == 0
    assert rwq("undo", "--yes", *ca).code == 0
    assert rwq("mv", "a", "--to", "b", "--to-url", url, *ca, "--yes").code == 0
    words = ("-u", url, *ca, "-q", "b", "mv", "a", "--to", "c", "--to-url", plain, "--yes")
    assert rwq(*words).code == 0
    assert foreign.raw.lrange("c:queue", 0, -1) == [b"a"]
    assert rwq("ls", *ca).code == 2, "there is no server with TLS"
    assert rwq("context", "set", "secure", "-u", url, *ca).code == 0
    assert rwq("diff", "c", "b", "--to-context", "secure", "-Q").code == 1
    assert rwq("-c", "secure", "diff", "b", "c", "--to-url", plain, "-Q").code == 1
    assert rwq("mv", "-q", "c", "a", "--to", "d", "--to-context", "secure", "--yes").code == 0
    words = ("-c", "secure", "mv", "-q", "d", "a", "--to", "e", "--to-url", plain, "--yes")
    assert rwq(*words).code == 0
    assert foreign.raw.lrange("e:queue", 0, -1) == [b"a"]
