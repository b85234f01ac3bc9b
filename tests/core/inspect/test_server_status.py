"""What a server says of itself, and what it lets a user do."""

import pytest
from redis import Redis

from rwq_cli.core import Connection, Server, WorkQueue, connect
from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.inspect.server_status import server_access, server_status
from rwq_cli.core.lua import command_groups
from tests.conftest import QUEUE, AsUser, StartServer
from tests.core.lua.test_permissions import WRITES, make_queue, queue_of
from tests.driver import until
from tests.verbs import VERBS

SETTINGS = ("maxmemory_bytes", "eviction", "persists", "appends")


def settings_of(connection: Connection) -> tuple[object, ...]:
    status = server_status(connection)
    return tuple(getattr(status, name) for name in SETTINGS)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ("--maxmemory", "1gb", "--maxmemory-policy", "volatile-ttl"),
            (2**30, "volatile-ttl", False, False),
        ),
        (("--save", "60", "1000"), (0, "noeviction", True, False)),
        (("--appendonly", "yes"), (0, "noeviction", True, True)),
    ],
)
def test_settings_of_a_server(
    start_server: StartServer, options: tuple[str, ...], expected: tuple[object, ...]
) -> None:
    connection = connect(Server(start_server(*options).url))
    assert settings_of(connection) == expected
    assert 0 < server_access(connection, None).latency_ms < 1000
    connection.close()


def test_settings_that_the_server_hides_are_unknown(as_user: AsUser) -> None:
    denied = (["-config"], ["-info"], ["-info", "-config"])
    assert [settings_of(as_user("+@all", *rules)) for rules in denied] == [
        (0, "noeviction", None, False),
        *[(None, None, None, None)] * 2,
    ]


def test_a_server_that_cannot_save_says_so(start_server: StartServer) -> None:
    # Where nobody may create a file.
    server = start_server("--dir", "/proc")
    connection = connect(Server(server.url))
    try:
        assert not server_status(connection).is_failing
        with server.client() as raw:
            raw.bgsave()
            until(lambda: not raw.info("persistence")["rdb_bgsave_in_progress"])
        assert server_status(connection).is_failing
    finally:
        connection.close()


def test_what_a_user_without_scripts_may_do_is_known(as_user: AsUser) -> None:
    limited = as_user("+@read", "+@connection", "-@dangerous")
    denied = server_access(limited, WorkQueue(limited, QUEUE)).denied
    assert denied is not None
    assert set(denied) == set(command_groups())
    assert all(why.startswith("User ") and why.endswith(" command") for why in denied.values())


@pytest.mark.needs("acl-check")
@pytest.mark.parametrize(
    ("command", "name"),
    [
        *(
            pytest.param(
                f"{path} {operation.option}".strip(),
                name,
                marks=[] if name in (row.heaviest or row.operations or ()) else pytest.mark.ci,
            )
            for path, row in VERBS.items()
            for name, operation in (row.operations or {}).items()
            # Here it has nothing.
            if name != "release one's own"
        ),
        *(("work", f"{end} a job") for end in ("complete", "retry or release", "bury")),
    ],
)
def test_what_is_refused_is_denied_beforehand(
    queue: WorkQueue, raw: Redis, as_user: AsUser, command: str, name: str
) -> None:
    ids = make_queue(raw, 25)
    raw.config_resetstat()
    WRITES[name](queue_of(queue.connection), ids)
    used = [stat.removeprefix("cmdstat_") for stat in raw.info("commandstats")]
    known = raw.execute_command("COMMAND")
    writes = {each for each in used if "write" in known.get(each, {"flags": ()})["flags"]}
    refused: set[str] = set()
    denied: set[str] = set()
    for each in sorted(writes):
        limited = as_user("+@all", f"-{each}")
        ids = make_queue(raw, 25)
        try:
            WRITES[name](queue_of(limited), ids)
        except PermissionDenied:
            refused.add(each)
        reasons = server_access(limited, WorkQueue(limited, QUEUE)).denied
        assert reasons is not None
        if command in reasons:
            denied.add(each)
    assert refused, name
    assert denied >= refused, name
