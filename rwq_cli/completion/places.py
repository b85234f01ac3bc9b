"""Where each shell looks for completion scripts of this user, and how one gets there."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

from rwq_cli.completion.shells import Shell
from rwq_cli.core.errors import RwqError


def place_of(shell: Shell, variables: Mapping[str, str]) -> Path:
    """The file that a shell reads the completion of `rwq` from.

    Args:
        shell: The shell.
        variables: The environment variables.
    """
    if shell is Shell.FISH:
        return _base(variables, "XDG_CONFIG_HOME", ".config") / "fish/completions/rwq.fish"
    data = _base(variables, "XDG_DATA_HOME", ".local/share")
    if shell is Shell.ZSH:
        return data / "zsh/site-functions/_rwq"
    # bash-completion 2.12 and later takes a list, as in PATH.
    chosen = variables.get("BASH_COMPLETION_USER_DIR", "").split(":")[0]
    return (Path(chosen) if chosen else data / "bash-completion") / "completions/rwq"


def still_to_do(shell: Shell, place: Path, variables: Mapping[str, str]) -> str | None:
    """What the user may have to do before the shell reads the script; None if nothing.

    Args:
        shell: The shell.
        place: Where the script is.
        variables: The environment variables.
    """
    if shell is Shell.BASH:
        return (
            "bash reads it where the bash-completion package is set up; elsewhere add to "
            f"~/.bashrc: source {shlex.quote(str(place))}"
        )
    if shell is Shell.ZSH and str(place.parent) not in variables.get("FPATH", "").split(":"):
        return (
            "unless fpath has that directory, add to ~/.zshrc, before compinit: "
            f"fpath=({shlex.quote(str(place.parent))} $fpath)"
        )
    return None


def install(text: str, place: Path) -> None:
    """Write a script to its place, whole or not at all.

    Args:
        text: The script.
        place: The file. Where it is a link, what it points to is replaced.

    Raises:
        RwqError: It cannot be written.
    """
    target = Path(os.path.realpath(place))
    temporary: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("wb", dir=target.parent, prefix=".rwq-", delete=False) as file:
            temporary = Path(file.name)
            file.write(text.encode())
        # A temporary file is for its owner alone; a script without secrets is like other files.
        temporary.chmod(0o644)
        temporary.replace(target)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        reason = (error.strerror or str(error)).lower()
        raise RwqError(
            f"cannot write {place}: {reason}", "without --install it is printed; put it elsewhere"
        ) from error


def _base(variables: Mapping[str, str], name: str, default: str) -> Path:
    """A base directory of the XDG specification, which ignores one that is not absolute."""
    chosen = variables.get(name, "")
    if os.path.isabs(chosen):
        return Path(chosen)
    return Path(variables.get("HOME") or Path.home()) / default
