"""What a user may not do is known before a command is refused."""

import pytest
from redis import Redis

from rwq_cli.core import WorkQueue
from rwq_cli.core.errors import PermissionDenied
from rwq_cli.core.inspect.server_status import server_access
from tests.conftest import QUEUE, AsUser
from tests.core.lua.test_permissions import WRITES, make_queue, queue_of

# By command, the operations of the library that it runs.
COMMANDS = {
    "add --id": ["add"],
    "add --unique": ["add unique"],
    "lease": ["lease"],
    "lease --id": ["lease by ID"],
    "complete": ["complete"],
    "complete --result": ["complete with a result"],
    "touch": ["touch"],
    "release": ["release", "release by force", "release to the front"],
    "release --delay": ["release later"],
    "bury": ["bury", "bury with a reason"],
    "kick": ["kick"],
    "edit": ["set data"],
    "rm": ["remove"],
    "mv": ["move", "move by force"],
    "purge": ["purge"],
    "import": ["restore", "restore and skip", "restore and replace"],
    "work": ["complete a job", "retry or release a job", "bury a job", "put a job back"],
    "clean light": ["light clean"],
    "clean deep": ["deep clean"],
    "doctor --fix": ["doctor's repairs"],
}


@pytest.mark.needs("acl-check")
def test_what_a_command_is_refused_is_denied_beforehand(
    queue: WorkQueue, raw: Redis, as_user: AsUser
) -> None:
    for command, names in COMMANDS.items():
        for name in names:
            _check(queue, raw, as_user, command, name)


def _check(queue: WorkQueue, raw: Redis, as_user: AsUser, command: str, name: str) -> None:
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
