"""Files that rwq installs for a user, such as completion scripts and man pages."""

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

from rwq_cli.core.errors import RwqError


def user_directory(variables: Mapping[str, str], name: str, default: str) -> Path:
    """A base directory of the XDG specification, which says to ignore a relative path.

    Args:
        variables: The environment variables.
        name: The variable that names it, such as `XDG_DATA_HOME`.
        default: Where it is under the home directory otherwise.
    """
    chosen = variables.get(name, "")
    if os.path.isabs(chosen):
        return Path(chosen)
    return Path(variables.get("HOME") or Path.home()) / default


def install_file(text: str, path: Path, hint: str) -> None:
    """Write a file atomically.

    Args:
        text: Its text.
        path: The file. If it is a symlink, its target is replaced.
        hint: What to do if it cannot be written.

    Raises:
        RwqError: It cannot be written.
    """
    target = Path(os.path.realpath(path))
    temporary: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("wb", dir=target.parent, prefix=".rwq-", delete=False) as file:
            temporary = Path(file.name)
            file.write(text.encode())
        # A temporary file is private; other users may read an installed file.
        temporary.chmod(0o644)
        temporary.replace(target)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        reason = (error.strerror or str(error)).lower()
        raise RwqError(f"cannot write {path}: {reason}", hint) from error
