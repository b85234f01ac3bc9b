"""A server for these tests, and workers of upstream's."""

import os
import shutil
from pathlib import Path

import pytest

from tests.live.peers import Peer, node_peer, python_peer
from tests.servers import PrivateServer


@pytest.fixture
def live_server(server: PrivateServer) -> PrivateServer:
    """The server, empty, and without the scripts of an earlier test."""
    with server.client() as client:
        client.flushall()
        client.script_flush()
    return server


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
