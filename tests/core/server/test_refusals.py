"""A server that refuses writes halfway through: nothing is half done."""

from collections.abc import Callable

import pytest

from rwq_cli.core import NewItem, Server, WorkQueue, connect
from rwq_cli.core.errors import OutOfMemory, PermissionDenied
from tests.conftest import QUEUE, AsUser, Foreign, StartServer, contents
from tests.servers import PrivateServer


@pytest.mark.parametrize(
    ("command", "act"),
    [
        ("setnx", lambda queue: queue.add(b"data", b"new")),
        ("rpop", lambda queue: queue.lease()),
        ("mset", lambda queue: list(queue.add_many([NewItem(b"new", b"data")], unique=True))),
        ("exists", lambda queue: list(queue.light_clean(grace_s=0))),
    ],
)
def test_a_script_that_may_not_run_a_command_is_denied_permission(
    as_user: AsUser, server: PrivateServer, command: str, act: Callable[[WorkQueue], object]
) -> None:
    raw = server.client()
    foreign = Foreign(raw)
    foreign.waiting(b"waiting")
    foreign.abandoned(b"abandoned")
    before = contents(raw)
    with pytest.raises(PermissionDenied) as caught:
        act(WorkQueue(as_user("+@all", f"-{command}"), QUEUE))
    message = caught.value.message
    # Of what a script may not run, Redis 7.0 does not say the name.
    assert f"'{command}'" in message or "can't run this command" in message
    assert contents(raw) == before


def test_a_batch_without_memory_adds_nothing(start_server: StartServer) -> None:
    private = start_server("--maxmemory-policy", "noeviction")
    raw, queue = private.client(), WorkQueue(connect(Server(private.url)), QUEUE)
    raw.config_set("maxmemory", raw.info("memory")["used_memory"] + 40_000_000)
    items = (NewItem(b"%d" % number, b"x" * 10_000) for number in range(10_000))
    added = []
    with pytest.raises(OutOfMemory) as caught:
        added.extend(queue.add_many(items))
    raw.config_set("maxmemory", 0)
    assert caught.value.acknowledged == len(added) > 0
    ids = [outcome.item_id for outcome in added]
    assert raw.lrange(b"jobs:queue", 0, -1) == ids[::-1]
    assert set(raw.keys()) == {b"jobs:queue", *(b"jobs:item:" + item_id for item_id in ids)}
    # Ending jobs needs no memory.
    Foreign(raw).leased(b"leased", holder=b"me")
    raw.config_set("maxmemory", 1)
    assert queue.complete(b"leased")
