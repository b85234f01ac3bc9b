"""Commands as values. Without redis, so that a command's help does not load it."""

from collections.abc import Sequence
from typing import Any

from rwq_cli.core.lua import DRY_RUN_AT, Script, load_script

Command = Sequence[Any]

# The reply of a refused call.
REFUSED = object()


class ScriptCommand(tuple[Any, ...]):
    """A script call among the commands of `Connection.call_all`.

    Args:
        script_name: The file's name in `core/lua/ops`, without `.lua`.
        keys: The KEYS of the script.
        args: The ARGV of the script.
    """

    script: Script
    script_name: str

    def __new__(
        cls, script_name: str, keys: Sequence[bytes], args: Sequence[Any]
    ) -> "ScriptCommand":
        script = load_script(script_name)
        made = super().__new__(cls, ("EVALSHA", script.sha1, len(keys), *keys, *args))
        made.script = script
        made.script_name = script_name
        return made

    @property
    def queue_key(self) -> bytes:
        """The first of the KEYS: the main list of the queue."""
        key: bytes = self[3]
        return key

    def by_text(self) -> "ScriptCommand":
        """The command for a server that has not loaded the script."""
        return self._with(("EVAL", self.script.text, *self[2:]))

    def with_permissions(self, found: bytes) -> "ScriptCommand":
        """The command for a server that cannot check permissions: see `check_permissions`."""
        at = 3 + int(self[2]) + DRY_RUN_AT
        return self._with((*self[:at], self[at] + found, *self[at + 1 :]))

    def _with(self, words: Command) -> "ScriptCommand":
        made = super().__new__(type(self), words)
        made.script, made.script_name = self.script, self.script_name
        return made


class Transaction(tuple[Command, ...]):
    """Commands that run in MULTI and EXEC."""
