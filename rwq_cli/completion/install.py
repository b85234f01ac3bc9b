"""Where each shell looks for the completion scripts of a user."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from rwq_cli.completion.scripts import Shell
from rwq_cli.environment import user_directory


def script_path(shell: Shell, variables: Mapping[str, str]) -> Path:
    """The file that a shell reads the completion of `rwq` from.

    Args:
        shell: The shell.
        variables: The environment variables.
    """
    if shell is Shell.FISH:
        return user_directory(variables, "XDG_CONFIG_HOME", ".config") / "fish/completions/rwq.fish"
    data = user_directory(variables, "XDG_DATA_HOME", ".local/share")
    if shell is Shell.ZSH:
        return data / "zsh/site-functions/_rwq"
    # bash-completion 2.12 and later accept a list, as in PATH.
    chosen = variables.get("BASH_COMPLETION_USER_DIR", "").split(":")[0]
    return (Path(chosen) if chosen else data / "bash-completion") / "completions/rwq"


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
