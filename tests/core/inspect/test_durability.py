"""What a server says of how it keeps its keys, and what is made of its silence."""

import pytest

from rwq_cli.core import Server, connect
from rwq_cli.core.inspect.server_status import Durability, server_status
from tests.conftest import AsUser, StartServer
from tests.driver import until


def durability_at(start_server: StartServer, *options: str) -> Durability:
    connection = connect(Server(start_server(*options).url))
    try:
        return server_status(connection).durability
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("options", "expected", "may_evict"),
    [
        (
            ("--maxmemory", "1gb", "--maxmemory-policy", "volatile-ttl"),
            Durability(2**30, "volatile-ttl", False, False),
            True,
        ),
        (("--save", "60", "1000"), Durability(0, "noeviction", True, False), False),
        (("--appendonly", "yes"), Durability(0, "noeviction", True, True), False),
    ],
)
def test_settings_of_a_server(
    start_server: StartServer, options: tuple[str, ...], expected: Durability, may_evict: bool
) -> None:
    found = durability_at(start_server, *options)
    assert found == expected
    assert found.may_evict is may_evict


@pytest.mark.parametrize(
    ("denied", "expected"),
    [
        (("-config",), Durability(0, "noeviction", None, False)),
        (("-info",), Durability(None, None, None)),
        (("-info", "-config"), Durability(None, None, None)),
    ],
)
def test_settings_that_the_server_hides_are_unknown(
    as_user: AsUser, denied: tuple[str, ...], expected: Durability
) -> None:
    found = server_status(as_user("+@all", *denied)).durability
    assert found == expected
    assert found.may_evict is False


def test_a_server_that_cannot_save_says_so(start_server: StartServer) -> None:
    # Where nobody may create a file.
    server = start_server("--dir", "/proc")
    connection = connect(Server(server.url))
    try:
        assert not server_status(connection).durability.is_failing
        with server.client() as raw:
            raw.bgsave()
            until(lambda: not raw.info("persistence")["rdb_bgsave_in_progress"])
        assert server_status(connection).durability.is_failing
    finally:
        connection.close()
