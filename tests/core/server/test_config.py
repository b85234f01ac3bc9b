"""What a server says of how it keeps its keys, and what is made of its silence."""

import pytest

from rwq_cli.core import Connection, Server, connect
from rwq_cli.core.server.config import ServerConfig, hash_tag, server_config
from tests.conftest import AsUser, StartServer


def told_by(start_server: StartServer, *options: str) -> ServerConfig:
    connection = connect(Server(start_server(*options).url))
    try:
        return server_config(connection)
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("options", "expected", "may_evict"),
    [
        ((), ServerConfig(0, "noeviction", False), False),
        (("--maxmemory-policy", "allkeys-lru"), ServerConfig(0, "allkeys-lru", False), True),
        (
            ("--maxmemory", "1gb", "--maxmemory-policy", "volatile-ttl"),
            ServerConfig(2**30, "volatile-ttl", False),
            True,
        ),
        (("--maxmemory", "1gb"), ServerConfig(2**30, "noeviction", False), False),
        (("--save", "60", "1000"), ServerConfig(0, "noeviction", True), False),
        (("--appendonly", "yes"), ServerConfig(0, "noeviction", True), False),
    ],
)
def test_what_it_says(
    start_server: StartServer, options: tuple[str, ...], expected: ServerConfig, may_evict: bool
) -> None:
    told = told_by(start_server, *options)
    assert told == expected
    assert told.may_evict is may_evict


@pytest.mark.parametrize(
    ("denied", "expected"),
    [
        (("-config",), ServerConfig(0, "noeviction", None)),
        (("-info",), ServerConfig(None, None, None)),
        (("-info", "-config"), ServerConfig(None, None, None)),
    ],
)
def test_what_it_will_not_say_is_unknown(
    as_user: AsUser, denied: tuple[str, ...], expected: ServerConfig
) -> None:
    told = server_config(as_user("+@all", *denied))
    assert told == expected
    assert told.may_evict is False


def test_the_fake_says_something_or_nothing(connection: Connection) -> None:
    assert server_config(connection).may_evict is False


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        (b"jobs", None),
        (b"{jobs}", b"jobs"),
        (b"a{jobs}b{x}", b"jobs"),
        (b"{}", None),
        (b"{}{x}", None),
        (b"{jobs", None),
        (b"}jobs{", None),
        (b"a{{b}}", b"{b"),
        (b"{\xff}", b"\xff"),
    ],
)
def test_hash_tag(name: bytes, tag: bytes | None) -> None:
    assert hash_tag(name) == tag
