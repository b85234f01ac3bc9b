"""A context: a named server, with its queue, its password and its protection."""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from rwq_cli.core.errors import InvalidArgument

COLOURS = ("red", "green", "yellow", "blue", "magenta", "cyan")


class ContextError(InvalidArgument):
    """The file of contexts cannot be used, or there is no such context."""

    code = "context"


class Protection(StrEnum):
    """How a destructive action must be confirmed; each level includes the previous one.

    Attributes:
        NONE: A destructive action asks, unless `--yes` is given.
        ASK: On a terminal it asks even with `--yes`.
        TYPE: The context's name has to be typed, or given as `--yes=NAME`.
    """

    NONE = "none"
    ASK = "ask"
    TYPE = "type"


# A dataclass would take three times as long to create, at every start.
class Context(NamedTuple):
    """A named server.

    Attributes:
        name: Its name.
        url: The server's URL.
        queue: The queue if none is named; None if there is none.
        password_command: A shell command that prints the password; None if there is none.
        password_file: A file whose first line is the password; None if there is none.
        color: The colour of its name; None if there is none.
        read_only: True if commands that change the server need `--write`.
        protect: What destructive commands ask.
    """

    name: str
    url: str
    queue: str | None = None
    password_command: str | None = None
    password_file: str | None = None
    color: str | None = None
    read_only: bool = False
    protect: Protection = Protection.NONE

    @property
    def has_password(self) -> bool:
        """True if there is a password outside the URL."""
        return self.password_command is not None or self.password_file is not None

    @property
    def is_protected(self) -> bool:
        """True if `--yes` alone does not confirm a destructive action on a terminal."""
        return self.protect is not Protection.NONE

    @property
    def requires_name(self) -> bool:
        """True if only its name confirms a destructive action."""
        return self.protect is Protection.TYPE


def most_protected(contexts: Iterable[Context]) -> Context | None:
    """The context with the most protection; None for no contexts."""
    levels = list(Protection)
    return max(contexts, key=lambda c: (c.read_only, levels.index(c.protect)), default=None)
