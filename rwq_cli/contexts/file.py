"""Reads `config.toml`: tables such as `[contexts.prod]`, and the names of two of them.

Anyone who can write the file can run commands as its reader, or send the reader's to another
server. So rwq, as ssh does, refuses a file that others may write, one in a directory that others
may write, and a password in a file that others may read.
"""

import os
import stat
import tomllib
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.environment import os_reason
from rwq_cli.streams import unmarked

COLOURS = ("red", "green", "yellow", "blue", "magenta", "cyan")


class ContextError(InvalidArgument, code="context"): ...


class Protection(StrEnum):
    """How a destructive action must be confirmed; each level includes the previous one."""

    # NONE asks unless `--yes` is given, ASK on a terminal even then, TYPE for the context's name.
    NONE = "none"
    ASK = "ask"
    TYPE = "type"


# A dataclass would take three times as long to create, at every start-up.
class Context(NamedTuple):
    """A named server, with the keys of the file; see `rwq context set --help`."""

    name: str
    url: str
    queue: str | None = None
    password_command: str | None = None
    password_file: str | None = None
    color: str | None = None
    undo_dir: str | None = None
    read_only: bool = False
    protect: Protection = Protection.NONE

    def __str__(self) -> str:
        return f"context {self.name}"

    @property
    def protection_level(self) -> int:
        return list(Protection).index(self.protect)


# A test of a value, and what it must be.
_Check = tuple[Callable[[Any], bool], str]
_TEXT: _Check = (lambda value: isinstance(value, str) and value != "", "a string in quotes")
_TABLE: _Check = (lambda value: isinstance(value, Mapping), "a table: write [contexts.NAME]")
KEYS = Context._fields[1:]
_CONTEXT: Mapping[str, _Check] = {
    **dict.fromkeys(KEYS, _TEXT),
    "color": (COLOURS.__contains__, f"one of {', '.join(COLOURS)}"),
    "read_only": (lambda value: isinstance(value, bool), "true or false"),
    "protect": (tuple(Protection).__contains__, f"one of {', '.join(Protection)}"),
}
_NAME: _Check = (lambda value: isinstance(value, str), "a name in quotes")
_FILE: Mapping[str, _Check] = {"current": _NAME, "previous": _NAME, "contexts": _TABLE}


class Contexts(NamedTuple):
    """The contents of the file, which may not exist, with the current and previous context."""

    path: Path
    by_name: Mapping[str, Context] = MappingProxyType({})
    current: str | None = None
    previous: str | None = None

    def get(self, name: str) -> Context:
        """Return the context with this name; refuse if others can read a password in it."""
        context = self.named(name)
        if holds_secret(context.url) and os.stat(self.path).st_mode & 0o044:
            raise ContextError(
                f"{self.path} holds the password of context {name}, and other users can read it",
                f"chmod 600 {self.path}",
            )
        return context

    def named(self, name: str) -> Context:
        context = self.by_name.get(name)
        if context is None:
            hint = f"known contexts: {', '.join(self.by_name)}"
            if not self.by_name:
                hint = "there are none yet: rwq context set NAME -u URL creates one"
            raise ContextError(f"no context is named {name!r}", hint)
        return context


def holds_secret(url: str) -> bool:
    from rwq_cli.core.server.urls import mask_url

    return "://" in url and mask_url(url) != url


def read_contexts(path: Path) -> Contexts:
    try:
        document = tomllib.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise malformed(path, error)
    return parse_contexts(path, document)


def read_text(path: Path) -> str:
    try:
        # The directory of a symlink's target, too.
        for folder in dict.fromkeys((path.parent, Path(os.path.realpath(path)).parent)):
            status = os.stat(folder)
            # In a sticky directory such as /tmp, nobody can replace another user's file.
            if stat.S_ISDIR(status.st_mode) and not status.st_mode & stat.S_ISVTX:
                _check_writers(folder, status, "chmod go-w")
        # Opening a FIFO would wait for a writer.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ContextError(f"{path} is not a regular file", "replace it with one")
            _check_writers(path, status, "chmod 600")
            raw = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        raise ContextError(f"cannot read {path}: {os_reason(error)}", "check its permissions")
    try:
        return unmarked(raw, str(path), ContextError).decode()
    except UnicodeDecodeError:
        raise malformed(path, "it is not UTF-8")


def _check_writers(path: Path, status: os.stat_result, remedy: str) -> None:
    if status.st_mode & 0o022 or status.st_uid not in (0, os.geteuid()):
        raise ContextError(f"other users can write to {path}", f"{remedy} {path}, if it is yours")


def malformed(path: Path, error: Exception | str) -> ContextError:
    """Return the error for a file that is not TOML; parsers quote at most one character."""
    return ContextError(f"{path} is not TOML: {error}", "correct it in an editor")


def parse_contexts(path: Path, document: Mapping[str, Any]) -> Contexts:
    _check_table(str(path), document, _FILE)
    by_name = {name: _context(path, name, it) for name, it in document.get("contexts", {}).items()}
    return Contexts(path, by_name, document.get("current"), document.get("previous"))


def _check_table(where: str, table: Mapping[str, Any], checks: Mapping[str, _Check]) -> None:
    for key, value in table.items():
        if key not in checks:
            known = f"known keys: {', '.join(checks)}"
            raise ContextError(f"{where} has an unknown key {key!r}", known)
        is_right, words = checks[key]
        if not is_right(value):
            raise ContextError(f"{key} of {where} has an invalid value", f"it must be {words}")


def check_name(name: str) -> None:
    is_name = all(sign.isalnum() or sign in "._-@:/+" for sign in name)
    if not name or not is_name or name.startswith("-"):
        raise ContextError(
            f"a context cannot be named {name!r}",
            "a name has letters, digits and . _ - @ : / +, and does not begin with -",
        )


def _context(path: Path, name: str, table: Any) -> Context:
    check_name(name)
    where = f"context {name} in {path}"
    if not _TABLE[0](table):
        raise ContextError(f"{where} has an invalid value", f"it must be {_TABLE[1]}")
    _check_table(where, table, _CONTEXT)
    if "url" not in table:
        raise ContextError(f"{where} has no url", 'add url = "redis://host:6379/0"')
    passwords = [key for key in ("password_command", "password_file") if key in table]
    if passwords and _has_password(table["url"]):
        passwords.insert(0, "a password in its url")
    if len(passwords) > 1:
        raise ContextError(f"{where} has {' and '.join(passwords)}", "keep one of them")
    return Context(name, **{**table, "protect": Protection(table.get("protect", "none"))})


def _has_password(url: str) -> bool:
    from rwq_cli.core.server.urls import full_url, parse_address

    try:
        return bool(parse_address(full_url(url)).options.get("password"))
    except ValueError:
        # The URL cannot be parsed, so what would be masked is taken for a password.
        return holds_secret(url)
