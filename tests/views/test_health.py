"""The status of a server in words, and what of it is red."""

import pytest

from rwq_cli.core.health import ServerStatus
from rwq_cli.views.health import server_in_words, status_parts

HEALTHY = ServerStatus(
    version="Valkey 8.1.8",
    uptime_s=86_400,
    used_bytes=1 << 20,
    maxmemory_bytes=1 << 21,
    clients=2,
    persists=True,
    appends=True,
)


@pytest.mark.parametrize(
    ("change", "red"),
    [
        ({}, []),
        ({"uptime_s": 59}, ["up 59s"]),
        ({"uptime_s": 60}, []),
        ({"used_bytes": 1_900_000}, ["1.8 MiB of 2.0 MiB"]),
        ({"used_bytes": 1_880_000}, []),
        ({"is_failing": True}, ["cannot save"]),
        ({"persists": False}, ["no persistence"]),
        ({"persists": None}, []),
    ],
)
def test_what_an_operator_must_see_is_red(change: dict[str, object], red: list[str]) -> None:
    status = HEALTHY._replace(**change)
    assert [text for text, style in status_parts(status) if style == "red"] == red


def test_a_line_names_what_was_lost() -> None:
    status = HEALTHY._replace(
        evicted=2, eviction="allkeys-lru", flushes=3, loaded=4, last_save_s=90, node="db1:6379"
    )
    assert server_in_words(status) == (
        "db1:6379, Valkey 8.1.8, 1.0 MiB of 2.0 MiB, up 1d, 2 clients, append-only file, evicted 2 "
        "keys (allkeys-lru), flushed 3 times, loaded 4 keys when it started, saved 1m30s ago"
    )
    assert server_in_words(ServerStatus()) == "persistence unknown"
