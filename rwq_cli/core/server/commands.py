"""Commands as values. Without redis, so that a command's help does not load it."""

from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Any

from rwq_cli.core.lua import HEAD_WORDS, Script, header_of, load_script

Command = Sequence[Any]

# The reply of a refused call.
REFUSED = object()

# The commands that change nothing as rwq sends them; CONFIG only as CONFIG GET, and EVAL only for
# the write that `server_status` tries. A read that is not among them is not sent again after its
# reply was lost.
_READS = frozenset(
    (
        *("ACL", "CONFIG", "EVAL", "EXISTS", "GET", "GETRANGE", "HEXISTS", "HGET", "HKEYS", "HLEN"),
        *("HMGET", "HSCAN", "HSTRLEN", "INFO", "LINDEX", "LLEN", "LPOS", "LRANGE", "MEMORY"),
        *("MGET", "OBJECT", "PING", "PTTL", "SCAN", "STRLEN", "TIME", "TYPE", "XRANGE"),
        *("XREVRANGE", "ZCARD", "ZCOUNT", "ZRANGE", "ZRANGEBYSCORE", "ZRANK", "ZREVRANGE"),
        *("ZREVRANK", "ZSCAN", "ZSCORE"),
    )
)


class ScriptCommand(tuple[Any, ...]):
    """A call of a script of `core/lua/ops`; if it `reads_only`, one that may write does not."""

    script: Script
    reads_only: bool

    def __new__(
        cls, name: str, keys: Sequence[bytes], args: Sequence[Any], *, reads_only: bool = False
    ) -> "ScriptCommand":
        script = load_script(name)
        command = super().__new__(cls, ("EVALSHA", script.sha1, b"%d" % len(keys), *keys, *args))
        command.script, command.reads_only = script, reads_only
        return command

    def by_text(self) -> "ScriptCommand":
        """The command for a server that has not loaded the script."""
        return self._with(("EVAL", self.script.text, *self[2:]))

    @property
    def is_bounded(self) -> bool:
        """Whether `within` bounds its reply."""
        return "bytes_max" in self.script.args

    def within(self, bytes_max: int) -> "ScriptCommand":
        """The command, whose reply has so many bytes of data before those of its last item."""
        at = 3 + int(self[2]) + HEAD_WORDS + self.script.args.index("bytes_max")
        return self._with((*self[:at], b"%d" % bytes_max, *self[at + 1 :]))

    def _with(self, words: Sequence[Any]) -> "ScriptCommand":
        command = super().__new__(type(self), words)
        command.script, command.reads_only = self.script, self.reads_only
        return command


class Transaction(tuple[Command, ...]):
    """Commands that run in MULTI and EXEC."""


@cache
def _may_write(operation: str) -> bool:
    # One that may write has its writes in its header.
    needed = header_of(f"ops/{operation}").writes.get("", {})
    return not _READS.issuperset(chain(*needed.values()))


def writes(request: Command) -> bool:
    """Whether a request may change something."""
    if isinstance(request, ScriptCommand):
        return not request.reads_only and _may_write(request.script.name)
    if isinstance(request, Transaction):
        return any(map(writes, request))
    return request[0] not in _READS
