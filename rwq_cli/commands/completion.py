"""`rwq completion`: the completion script of a shell."""

import os
from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import Annotated

from rwq_cli.commands import Settings, argument, command, escaped, option
from rwq_cli.core.errors import RwqError
from rwq_cli.environment import os_errors_as, user_directory

Shell = StrEnum("Shell", "BASH ZSH FISH")
# Where a shell's script is in the home directory, the file that loads it, and how.
_LOADED = {
    Shell.BASH: (".bash_completions/rwq.sh", ".bashrc", "source {}"),
    # Completion has to be on already: compinit sets it up for all programs.
    Shell.ZSH: (".zfunc/_rwq", ".zshrc", "whence compdef >/dev/null && source {}"),
}


@command(no="the script could not be written", reads_only=True)
def completion(
    settings: Settings,
    shell: Annotated[Shell, argument("SHELL", "bash, zsh or fish.")],
    install: Annotated[
        bool,
        option("--install", "Write it to a file that the shell's startup file loads; show both."),
    ] = False,
) -> None:
    """Print the completion script of a shell, or install it for this user.

    rwq completion bash --install
    source <(rwq completion zsh)
    rwq completion fish | source
    """
    from rwq_cli.completion import script_of

    if not install:
        settings.out.text(f"{script_of(shell)}\n")
        return
    hint = "print it without --install, and save it elsewhere"
    with os_errors_as(RwqError, "cannot write the script", hint):
        for line in _install(settings, shell, script_of(shell)):
            settings.environment.note(line)


def _install(settings: Settings, shell: Shell, script: str) -> list[str]:
    """Write the script, and what loads it; return a line for each file that was changed."""
    variables = settings.environment.variables
    if shell is Shell.FISH:
        folder = user_directory(variables, "XDG_CONFIG_HOME", ".config")
        path = folder / "fish" / "completions" / "rwq.fish"
        _write(path, f"{script}\n")
        return [f"installed {_shown(path)}"]
    home = Path(variables.get("HOME") or os.path.expanduser("~"))
    place, loader, pattern = _LOADED[shell]
    path, start = home / place, home / loader
    _write(path, f"{script}\n")
    notes, line = [f"installed {_shown(path)}"], pattern.format(quote(str(path)))
    before = start.read_text("utf-8", "surrogateescape") if start.exists() else ""
    if line not in before.splitlines():
        with start.open("a", encoding="utf-8", errors="surrogateescape") as file:
            file.write("\n" * (bool(before) and not before.endswith("\n")) + f"{line}\n")
        notes.append(f"added to {_shown(start)}: {line}")
    if shell is Shell.ZSH and "compinit" not in before:
        notes.append("zsh needs, above that line: autoload -Uz compinit; compinit")
    return notes


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def _shown(path: Path) -> str:
    return escaped(os.fsencode(path))
