"""Edits `config.toml`: comments stay, and no change of a concurrent rwq is lost."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from rwq_cli.contexts.config import (
    ContextError,
    Contexts,
    check_name,
    malformed,
    parse_contexts,
    read_contexts,
    read_text,
)
from rwq_cli.environment import os_errors_as


def set_context(
    path: Path, name: str, values: dict[str, str | bool], unset: frozenset[str]
) -> Contexts:
    check_name(name)
    with _edited(path) as document:
        tables: Any = document["contexts"]
        if name not in tables:
            tables[name] = tomlkit.table()
        for key in unset & tables[name].keys():
            del tables[name][key]
        for key, value in values.items():
            _put(tables[name], key, value)
    return read_contexts(path)


def remove_contexts(path: Path, names: list[str]) -> None:
    """Remove contexts; the current or previous context is unset if it is removed."""
    with _edited(path) as document:
        tables: Any = document["contexts"]
        for name in names:
            tables.pop(name, None)
        for key in ("current", "previous"):
            if document.get(key) in names:
                del document[key]


def use_context(path: Path, name: str) -> Contexts:
    with _edited(path) as document:
        current = document.get("current")
        wanted = document.get("previous") if name == "-" else name
        if wanted is None:
            raise ContextError("there is no previous context", "rwq context list shows them all")
        if wanted not in document["contexts"]:
            read_contexts(path).named(str(wanted))
        if wanted != current:
            if current is not None:
                document["previous"] = str(current)
            else:
                document.pop("previous", None)
            document["current"] = str(wanted)
    return read_contexts(path)


def _put(table: Any, key: str, value: str | bool) -> None:
    """Set a key; a new one is inserted right after the last key."""
    # tomlkit would append it after a comment at the end, which may belong to what follows.
    last = next(
        (last_key for last_key, _ in reversed(table.value.body) if last_key is not None), None
    )
    if key in table or last is None:
        table[key] = value
    else:
        table.value._insert_after(last, key, value)


@contextmanager
def _edited(path: Path) -> Iterator[tomlkit.TOMLDocument]:
    """Yield the file's document, to be changed under a lock; of a symlink, the target's."""
    real, hint = Path(os.path.realpath(path)), "check the permissions there"
    with os_errors_as(ContextError, f"cannot write {path}", hint), ExitStack() as at_end:
        real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(real.parent, os.O_RDONLY)
        at_end.callback(os.close, folder)
        # Some file systems have no locks.
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_EX)
        try:
            document = tomlkit.parse(read_text(path))
        except (TOMLKitError, RecursionError) as error:
            raise malformed(path, error)
        if "contexts" not in document:
            document["contexts"] = tomlkit.table(is_super_table=True)
        try:
            yield document
        except (AttributeError, TypeError, ValueError, TOMLKitError):
            # For example, neither an inline table nor a number can hold another table.
            raise ContextError(
                f"{path} has a layout that rwq cannot edit", "write [contexts.NAME] tables"
            )
        new = tomlkit.dumps(document)
        parse_contexts(path, tomlkit.parse(new).unwrap())
        _replace(real, new)
        os.fsync(folder)


def _replace(path: Path, text: str) -> None:
    # `mkstemp` gives it the mode 0600.
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
