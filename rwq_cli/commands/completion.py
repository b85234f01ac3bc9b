"""`rwq completion`: the completion script of a shell."""

from typing import Annotated

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.install_file import install_file
from rwq_cli.cli.options import option
from rwq_cli.cli.settings import Settings
from rwq_cli.completion.install import remaining_step, script_path
from rwq_cli.completion.scripts import Shell, script_for
from rwq_cli.completion.spec import collect
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.escape import escaped_text
from rwq_cli.output.report import Report, Text

app = CommandModule()


@app.command(
    help="Print the completion script of a shell, or install it for this user.",
    examples=(
        "rwq completion bash --install",
        "source <(rwq completion zsh)",
        "rwq completion fish | source",
    ),
    exits={ExitStatus.NO: "the script could not be written"},
    reads_only=True,
)
def completion(
    settings: Settings,
    shell: Annotated[Shell, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
    install: Annotated[
        bool,
        option(
            "--install",
            "Write it to the directory where the shell looks for it, and print the path.",
        ),
    ] = False,
) -> Report:
    text = script_for(shell, collect())
    if not install:
        return Text(text)
    environment = settings.environment
    path = script_path(shell, environment.variables)
    install_file(text, path, "print it without --install, and save it elsewhere")
    environment.note(f"installed {escaped_text(str(path))}")
    if (step := remaining_step(shell, path, environment.variables)) is not None:
        environment.note(escaped_text(step))
    return Text("")
