"""Command lines for other programs."""

import pytest

from rwq_cli.core.server.address import Server, connect
from rwq_cli.views.command_lines import redis_cli


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
