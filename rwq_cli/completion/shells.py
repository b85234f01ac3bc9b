"""The shells that there is a script for."""

from enum import StrEnum

from rwq_cli.completion import bash, fish, zsh
from rwq_cli.completion.spec import Spec


class Shell(StrEnum):
    """A shell; the value is its name."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


# What each script is called under `completions/`.
FILE_NAMES = {Shell.BASH: "rwq.bash", Shell.ZSH: "_rwq", Shell.FISH: "rwq.fish"}

_SCRIPTS = {Shell.BASH: bash.script, Shell.ZSH: zsh.script, Shell.FISH: fish.script}


def script_for(shell: Shell, spec: Spec) -> str:
    """The completion script of one shell."""
    return _SCRIPTS[shell](spec)
