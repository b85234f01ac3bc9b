"""Local servers for the tests, in directories of their own.

`RWQ_TEST_SERVER` names the server program, or several, separated as in PATH: each test then runs
with each of them. Without it, the tests use the program that a user would get.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from rwq_cli.local.server import LocalServer

PROGRAMS = os.environ.get("RWQ_TEST_SERVER", "").split(os.pathsep)


class NewServer(Protocol):
    """Makes a server that is killed at the end of the test; `variables` change its environment."""

    def __call__(self, directory: Path, **variables: str) -> LocalServer: ...


@pytest.fixture(params=range(len(PROGRAMS)), ids=lambda number: f"server{number}")
def environ(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """An environment without the variables of the user who runs the tests."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    if PROGRAMS[request.param]:
        environ["RWQ_LOCAL_SERVER"] = PROGRAMS[request.param]
    return environ


@pytest.fixture
def new_server(environ: dict[str, str]) -> Iterator[NewServer]:
    servers: list[LocalServer] = []

    def new(directory: Path, **variables: str) -> LocalServer:
        servers.append(LocalServer(directory, {**environ, **variables}))
        return servers[-1]

    yield new
    for server in servers:
        if server.directory.is_dir():
            server.kill()


@pytest.fixture
def local_server(new_server: NewServer, tmp_path: Path) -> LocalServer:
    """A server that has not been started; its directory does not exist."""
    return new_server(tmp_path / "data")
