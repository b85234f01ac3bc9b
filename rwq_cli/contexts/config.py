"""Reads `config.toml`: tables such as `[contexts.prod]`, and the names of two of them.

Anyone who can write the file can run commands as its reader, or send the reader's to another
server. So rwq, as ssh does, refuses a file that others may write, one in a directory that others
may write, and a password in a file that others may read.
"""

import os
import stat
import tomllib
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, NamedTuple, TypeVar

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import asdict

from rwq_cli.core.errors import InvalidArgument
from rwq_cli.descriptors import unmarked
from rwq_cli.environment import os_reason


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"
    YELLOW = "yellow"
    BLUE = "blue"
    MAGENTA = "magenta"
    CYAN = "cyan"


class ContextError(InvalidArgument, code="context"): ...


class Protection(StrEnum):
    """How a destructive action must be confirmed; each level includes the previous one."""

    # NONE asks unless `--yes` is given, ASK on a terminal even then, TYPE for the context's name.
    NONE = "none"
    ASK = "ask"
    TYPE = "type"


_Text = Annotated[str, Meta(min_length=1)]


class ContextTable(Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of a context; see `rwq context set --help`."""

    url: _Text
    queue: _Text | None = None
    password_command: _Text | None = None
    password_file: _Text | None = None
    tls_ca: _Text | None = None
    tls_cert: _Text | None = None
    tls_key: _Text | None = None
    tls_insecure: bool = False
    color: Colour | None = None
    read_only: bool = False
    undo_dir: _Text | None = None
    protect: Protection = Protection.NONE

    @property
    def protection_level(self) -> int:
        return list(Protection).index(self.protect)


class Context(ContextTable, frozen=True, kw_only=True):
    """A named server."""

    name: str

    def __str__(self) -> str:
        return f"context {self.name}"


KEYS = ContextTable.__struct_fields__


class _File(Struct, forbid_unknown_fields=True):
    current: str | None = None
    previous: str | None = None
    contexts: dict[str, dict[str, object]] = {}


_CHOICES = {"color": tuple(Colour), "protect": tuple(Protection)}
T = TypeVar("T", bound=Struct)


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


def parse_contexts(path: Path, document: Mapping[str, object]) -> Contexts:
    file = _converted(str(path), document, _File)
    by_name = {name: _context(path, name, table) for name, table in file.contexts.items()}
    return Contexts(path, by_name, file.current, file.previous)


def _converted(where: str, table: Mapping[str, object], kind: type[T]) -> T:
    """Convert a table of the file; raise `ContextError` with the key that is wrong."""
    try:
        return convert(table, kind)
    except ValidationError as error:
        what, _, place = str(error).partition(" - at `$.")
        key = place.partition(".")[0].partition("[")[0].strip("`")
    what = what[:1].lower() + what[1:]
    if "unknown field" in what:
        hint = f"known keys: {', '.join(kind.__struct_fields__)}"
        unknown = next(name for name in table if name not in kind.__struct_fields__)
        raise ContextError(f"{where} has an unknown key {unknown!r}", hint)
    hint = "write [contexts.NAME] tables, with text in quotes"
    if key in _CHOICES:
        hint = f"it must be one of {', '.join(_CHOICES[key])}"
    raise ContextError(f"{f'{key} of ' if key else ''}{where} cannot be used: {what}", hint)


def check_name(name: str) -> None:
    is_name = all(sign.isalnum() or sign in "._-@:/+" for sign in name)
    if not name or not is_name or name.startswith("-"):
        raise ContextError(
            f"a context cannot be named {name!r}",
            "a name has letters, digits and . _ - @ : / +, and does not begin with -",
        )


def _context(path: Path, name: str, table: Mapping[str, object]) -> Context:
    check_name(name)
    where = f"context {name} in {path}"
    if "url" not in table:
        raise ContextError(f"{where} has no url", 'add url = "redis://host:6379/0"')
    settings = _converted(where, table, ContextTable)
    passwords = [key for key in ("password_command", "password_file") if key in table]
    if passwords and _has_password(settings.url):
        passwords.insert(0, "a password in its url")
    if len(passwords) > 1:
        raise ContextError(f"{where} has {' and '.join(passwords)}", "keep one of them")
    return Context(name=name, **asdict(settings))


def _has_password(url: str) -> bool:
    from rwq_cli.core.server.urls import full_url, parse_address

    try:
        return bool(parse_address(full_url(url)).options.get("password"))
    except ValueError:
        # The URL cannot be parsed, so what would be masked is taken for a password.
        return holds_secret(url)
