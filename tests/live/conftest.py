"""A private server for these tests, and the ends of every process that they start."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.live.peers import Peer, node_peer, python_peer, start
from tests.servers import NoServerBinary, PrivateServer, running_server

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
def npm_packages() -> Path | str:
    """Where redis-work-queue 0.1.5 from npm is installed, or in words why it is not known."""
    folder = Path(os.environ.get("RWQ_NODE_PACKAGES", "/nonexistent"))
    package = folder / "node_modules" / "@mevitae" / "redis-work-queue" / "package.json"
    if shutil.which("node") is None:
        return "node is not on this machine"
    return folder if package.is_file() else "RWQ_NODE_PACKAGES has none: see CONTRIBUTING.md"


@pytest.fixture(params=["python", "node"])
def peer(request: pytest.FixtureRequest) -> Peer:
    """Workers of upstream's, in one language after the other."""
    if request.param == "python":
        return python_peer()
    packages = request.getfixturevalue("npm_packages")
    if isinstance(packages, str):
        pytest.skip(packages)
    return node_peer(packages)
