"""Naming a file on the path that hides a module which the program needs."""

import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

_LIBRARIES = ("redis", "hiredis", "typer", "click", "rich", "msgspec", "textual")


def hidden_module() -> str | None:
    """Say which module another file hides; None if that is so for none that was imported."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is None or "." in name:
            continue
        home = _home_of(name)
        if home is not None and not Path(file).resolve().is_relative_to(home.resolve()):
            return f"{file} hides the module {name}"
    return None


def _home_of(name: str) -> Path | None:
    """The directory in which a module of Python or of a library is; None for any other module."""
    if name in _LIBRARIES:
        try:
            return Path(str(distribution(name).locate_file("")))
        except PackageNotFoundError:
            return None
    return Path(sysconfig.get_path("stdlib")) if name in sys.stdlib_module_names else None
