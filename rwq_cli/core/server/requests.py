"""What is sent as one unit: a command, a script call, or a transaction."""

from functools import cache
from typing import Any

from redis import exceptions as rx

from rwq_cli.core.lua import NEEDS
from rwq_cli.core.server.commands import Command, ScriptCommand, Transaction
from rwq_cli.core.server.link import Link
from rwq_cli.core.server.packing import pack
from rwq_cli.core.server.permissions import check_permissions, is_unchecked

# The commands that change nothing as rwq sends them; CONFIG only as CONFIG GET. A read that is not
# among them is not sent again after its reply was lost.
_READS = frozenset(
    (
        *("ACL", "CONFIG", "EXISTS", "GET", "GETRANGE", "HEXISTS", "HGET", "HLEN", "HMGET"),
        *("HSCAN", "HSTRLEN", "INFO", "LINDEX", "LLEN", "LPOS", "LRANGE", "MGET", "OBJECT"),
        *("PING", "PTTL", "SCAN", "STRLEN", "TIME", "TYPE", "ZCARD", "ZCOUNT", "ZRANGE"),
        *("ZRANGEBYSCORE", "ZSCAN", "ZSCORE"),
    )
)


def pack_request(request: Command, link: Link) -> bytes:
    """Encode a command, a script call, or a transaction for a link."""
    if isinstance(request, Transaction):
        return b"".join(map(pack, (("MULTI",), *request, ("EXEC",))))
    if link.permissions and isinstance(request, ScriptCommand):
        request = request.with_permissions(link.permissions.get(_permissions_key(request), b""))
    return pack(request)


def read_reply(link: Link, request: Command) -> Any:
    """Read the reply to a request.

    Returns:
        The reply; of a transaction, the list of its replies. An error reply is returned as
        redis-py's exception; of a transaction, the refusal of a command before EXEC, so that
        nothing ran.
    """
    if not isinstance(request, Transaction):
        return link.read()
    *queued, done = [link.read() for _ in range(len(request) + 2)]
    if isinstance(done, list):
        return done
    if isinstance(done, rx.NoPermissionError):
        # A user who may not run EXEC: the link would queue all further commands.
        link.close()
    return next((reply for reply in queued if isinstance(reply, rx.ResponseError)), done)


def did_not_run(reply: Any) -> bool:
    """Whether a script did nothing, and `run_again` can run it."""
    return isinstance(reply, rx.NoScriptError) or is_unchecked(reply)


def run_again(link: Link, request: Command, reply: Any) -> Any:
    """Run a script that did not run: it was not loaded, or its permissions were not checked.

    Args:
        link: The link, without outstanding replies.
        request: The script call.
        reply: Its reply.

    Returns:
        The reply to the last call of it.
    """
    while did_not_run(reply):
        assert isinstance(request, ScriptCommand)
        key, call = _permissions_key(request), request
        if is_unchecked(reply):
            link.permissions[key] = link.permissions.get(key, b"") + check_permissions(link, reply)
        else:
            call = request.by_text()
        link.send(pack_request(call, link))
        reply = link.read()
    return reply


def _permissions_key(request: ScriptCommand) -> tuple[str, bytes]:
    """Where `Link.permissions` has those of a call: they are about the keys of one queue."""
    return request.script_name, request.queue_key


def writes(command: Command) -> bool:
    """Whether a command may write."""
    if isinstance(command, ScriptCommand):
        return script_writes(command.script_name)
    return command[0] not in _READS


@cache
def script_writes(name: str) -> bool:
    """Whether an operation may write: one that does has its writes in `NEEDS`."""
    needed = NEEDS.get(f"ops/{name}", {})
    return any(word not in _READS for words in needed.values() for word in words.split())
