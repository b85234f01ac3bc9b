"""A private server for these tests, and the ends of every process that they start."""

import fcntl
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.live.peers import Peer, node_peer, python_peer, start
from tests.servers import NoServerBinary, PrivateServer, running_server

_NPM_PACKAGE = "@mevitae/redis-work-queue@0.1.5"
_NPM_TIMEOUT_S = 60.0

StartProcess = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture(scope="session")
def live_server_process() -> Iterator[PrivateServer]:
    """A server that nobody else uses."""
    try:
        with running_server() as server:
            yield server
    except NoServerBinary as reason:
        pytest.skip(str(reason))


@pytest.fixture
def live_server(live_server_process: PrivateServer) -> PrivateServer:
    """The server, empty, and without the scripts of an earlier test."""
    with live_server_process.client() as client:
        client.flushall()
        client.script_flush()
    return live_server_process


@pytest.fixture
def start_process() -> Iterator[StartProcess]:
    """`peers.start`, whose processes all end with the test, however it ends."""
    started: list[subprocess.Popen[bytes]] = []

    def start_one(*words: object) -> "subprocess.Popen[bytes]":
        started.append(start(words))
        return started[-1]

    yield start_one
    for process in started:
        process.kill()
    for process in started:
        process.wait()


@pytest.fixture(scope="session")
def npm_packages(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path | str:
    """Where redis-work-queue 0.1.5 from npm is installed, or in words why it is not.

    It is kept in pytest's cache, so that only the first run of all asks the registry. Of several
    test processes one installs it, and the others wait.
    """
    if shutil.which("node") is None or shutil.which("npm") is None:
        return "node and npm are not on this machine"
    cache = getattr(request.config, "cache", None)
    folder = cache.mkdir("npm") if cache else tmp_path_factory.mktemp("npm")
    installed = folder / "node_modules" / "@mevitae" / "redis-work-queue" / "package.json"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not installed.is_file():
            words = ["npm", "install", "--prefix", str(folder), "--ignore-scripts", "--no-audit"]
            try:
                subprocess.run(
                    [*words, "--no-fund", _NPM_PACKAGE],
                    check=True,
                    capture_output=True,
                    timeout=_NPM_TIMEOUT_S,
                    stdin=subprocess.DEVNULL,
                )
            except (OSError, subprocess.SubprocessError) as error:
                return f"npm could not install {_NPM_PACKAGE}: {error}"
    return folder


@pytest.fixture(params=["python", "node"])
def peer(request: pytest.FixtureRequest) -> Peer:
    """Workers of upstream's, in one language after the other."""
    if request.param == "python":
        return python_peer()
    packages = request.getfixturevalue("npm_packages")
    if isinstance(packages, str):
        pytest.skip(packages)
    return node_peer(packages)
