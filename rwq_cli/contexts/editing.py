"""Changing `config.toml`: comments stay, and concurrent writers lose nothing."""

import fcntl
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import tomlkit
from tomlkit.exceptions import TOMLKitError

from rwq_cli.contexts.file import (
    Contexts,
    check_name,
    malformed,
    parse_contexts,
    read_contexts,
    unreadable,
)
from rwq_cli.contexts.model import ContextError
from rwq_cli.environment import os_reason

T = TypeVar("T")


def set_context(
    path: Path, name: str, values: dict[str, str | bool], unset: frozenset[str]
) -> Contexts:
    """Create or change a context.

    Args:
        path: The file.
        name: The context's name.
        values: The keys to set.
        unset: The keys to remove.

    Raises:
        ContextError: The context would not be valid, or the file cannot be changed.
    """
    check_name(name)

    def change(document: tomlkit.TOMLDocument) -> None:
        contexts = _table(document, "contexts", is_super_table=True)
        context = _table(contexts, name)
        for key in unset & context.keys():
            del context[key]
        for key, value in values.items():
            _put(context, key, value)

    return _edit(path, change)


def remove_contexts(path: Path, names: list[str]) -> Contexts:
    """Remove contexts; the current or previous context is unset if it is removed.

    Raises:
        ContextError: One of them does not exist, or the file cannot be changed.
    """

    def change(document: tomlkit.TOMLDocument) -> None:
        contexts = document.get("contexts", {})
        for name in names:
            if name not in contexts:
                read_contexts(path).named(name)
            del contexts[name]
        for key in ("current", "previous"):
            if document.get(key) in names:
                del document[key]

    return _edit(path, change)


def use_context(path: Path, name: str) -> Contexts:
    """Make a context the current one; `-` is the previous one.

    Raises:
        ContextError: There is none, or the file cannot be changed.
    """

    def change(document: tomlkit.TOMLDocument) -> None:
        current, previous = document.get("current"), document.get("previous")
        wanted = previous if name == "-" else name
        if wanted is None:
            raise ContextError("there is no previous context", "rwq context list shows them all")
        if wanted not in document.get("contexts", {}):
            read_contexts(path).named(str(wanted))
        if wanted != current:
            if current is not None:
                document["previous"] = str(current)
            elif previous is not None:
                del document["previous"]
            document["current"] = str(wanted)

    return _edit(path, change)


def _put(table: Any, key: str, value: str | bool) -> None:
    """Set a key; a new one is inserted right after the last key.

    tomlkit would append it after a comment at the end, which may belong to what follows.
    """
    last = next((each for each, _ in reversed(table.value.body) if each is not None), None)
    if key in table or last is None:
        table[key] = value
    else:
        table.value._insert_after(last, key, value)


def _table(parent: Any, name: str, *, is_super_table: bool = False) -> Any:
    """The table of this name, which is made if there is none."""
    if name not in parent:
        parent[name] = tomlkit.table(is_super_table=is_super_table)
    if not isinstance(parent[name], dict):
        raise ContextError(f"{name} in the file is not a table", "correct it in an editor")
    return parent[name]


def _edit(path: Path, change: Callable[[tomlkit.TOMLDocument], None]) -> Contexts:
    """Change the file under a lock, and return its new contents.

    A symlink is kept, and its target is replaced. Editors take no lock, so the file is compared
    before it is replaced.
    """
    real = Path(os.path.realpath(path))
    try:
        real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(real.parent, os.O_RDONLY)
        try:
            # Some file systems have no locks.
            with suppress(OSError):
                fcntl.flock(folder, fcntl.LOCK_EX)
            while True:
                before = _read(real)
                text, contexts = _changed(path, before, change)
                if text == before:
                    return contexts
                if _replace(real, before, text):
                    os.fsync(folder)
                    return contexts
        finally:
            os.close(folder)
    except OSError as error:
        reason = os_reason(error)
        raise ContextError(f"cannot write {path}: {reason}", "check the permissions there")


def _changed(
    path: Path, before: bytes, change: Callable[[tomlkit.TOMLDocument], None]
) -> tuple[bytes, Contexts]:
    try:
        document = tomlkit.parse(before.decode())
    except (ValueError, TOMLKitError, RecursionError) as error:
        raise malformed(path, error)
    try:
        change(document)
    except (ValueError, TOMLKitError):
        # For example, an inline table cannot hold another table.
        raise ContextError(
            f"{path} is laid out so that rwq cannot change it", "write [contexts.NAME] tables"
        )
    text = tomlkit.dumps(document)
    return text.encode(), parse_contexts(path, tomlkit.parse(text).unwrap())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise unreadable(path, error)


def _replace(path: Path, before: bytes, text: bytes) -> bool:
    """Replace the file if it was not changed meanwhile; return whether it was replaced."""
    # Its mode is 0600.
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if _read(path) != before:
            return False
        os.replace(name, path)
        return True
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
