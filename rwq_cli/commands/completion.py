"""`rwq completion`: the completion script of a shell."""

from enum import StrEnum
from typing import Annotated

from rwq_cli.commands import Settings, argument, command, option
from rwq_cli.core.errors import RwqError
from rwq_cli.environment import os_errors_as
from rwq_cli.output.escape import escaped_text

Shell = StrEnum("Shell", "BASH ZSH FISH")


@command(no="the script could not be written", reads_only=True)
def completion(
    settings: Settings,
    shell: Annotated[Shell, argument("SHELL", "bash, zsh or fish.")],
    install: Annotated[
        bool, option("--install", "Write it to a file that the shell reads, and say where it is.")
    ] = False,
) -> None:
    """Print the completion script of a shell, or install it for this user.

    rwq completion bash --install
    source <(rwq completion zsh)
    rwq completion fish | source
    """
    from typer._completion_shared import get_completion_script, install as install_script

    from rwq_cli.completion import VARIABLE

    if not install:
        script = get_completion_script(prog_name="rwq", complete_var=VARIABLE, shell=shell)
        settings.out.text(f"{script}\n")
        return
    hint = "print it without --install, and save it elsewhere"
    with os_errors_as(RwqError, "cannot write the script", hint):
        _, path = install_script(shell, prog_name="rwq", complete_var=VARIABLE)
    settings.environment.note(f"installed {escaped_text(str(path))}")
