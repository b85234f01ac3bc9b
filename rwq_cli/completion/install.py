"""Where each shell looks for the completion scripts of a user, and how to install one."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

from rwq_cli.completion.scripts import Shell
from rwq_cli.core.errors import RwqError


def script_path(shell: Shell, variables: Mapping[str, str]) -> Path:
    """The file that a shell reads the completion of `rwq` from.

    Args:
        shell: The shell.
        variables: The environment variables.
    """
    if shell is Shell.FISH:
        return _xdg(variables, "XDG_CONFIG_HOME", ".config") / "fish/completions/rwq.fish"
    data = _xdg(variables, "XDG_DATA_HOME", ".local/share")
    if shell is Shell.ZSH:
        return data / "zsh/site-functions/_rwq"
    # bash-completion 2.12 and later accept a list, as in PATH.
    chosen = variables.get("BASH_COMPLETION_USER_DIR", "").split(":")[0]
    return (Path(chosen) if chosen else data / "bash-completion") / "completions/rwq"


def _xdg(variables: Mapping[str, str], name: str, default: str) -> Path:
    """A base directory. The XDG specification says to ignore a relative path."""
    chosen = variables.get(name, "")
    if os.path.isabs(chosen):
        return Path(chosen)
    return Path(variables.get("HOME") or Path.home()) / default


def remaining_step(shell: Shell, path: Path, variables: Mapping[str, str]) -> str | None:
    """What the user may have to do before the shell reads the script; None if nothing.

    Args:
        shell: The shell.
        path: The installed script.
        variables: The environment variables.
    """
    if shell is Shell.BASH:
        return (
            "bash reads it if the bash-completion package is set up; otherwise add to "
            f"~/.bashrc: source {shlex.quote(str(path))}"
        )
    if shell is Shell.ZSH and str(path.parent) not in variables.get("FPATH", "").split(":"):
        return (
            "unless fpath has that directory, add to ~/.zshrc, before compinit: "
            f"fpath=({shlex.quote(str(path.parent))} $fpath)"
        )
    return None


def install_script(text: str, path: Path) -> None:
    """Write a script atomically.

    Args:
        text: The script.
        path: The file. If it is a symlink, its target is replaced.

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
        # A temporary file is private; other users may read the script.
        temporary.chmod(0o644)
        temporary.replace(target)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        reason = (error.strerror or str(error)).lower()
        raise RwqError(
            f"cannot write {path}: {reason}", "print it without --install, and save it elsewhere"
        ) from error
