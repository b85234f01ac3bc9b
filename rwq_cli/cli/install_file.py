"""Files that rwq installs for a user, such as completion scripts and man pages."""

import os
from pathlib import Path
from tempfile import NamedTemporaryFile

from rwq_cli.core.errors import RwqError
from rwq_cli.environment import os_reason


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
        reason = os_reason(error)
        raise RwqError(f"cannot write {path}: {reason}", hint) from error
