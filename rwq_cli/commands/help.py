"""`rwq help`: the help of a command, or a topic."""

from difflib import get_close_matches
from typing import Annotated, Any

import typer

from rwq_cli.cli.app import COMMANDS, build_root
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.help.screen import write_page
from rwq_cli.help.topics import Topic, topic_page
from rwq_cli.output.report import Report, Text

app = CommandModule()


@app.command(
    help="Show the help of a command, or a topic.",
    examples=("rwq help ls", "rwq help clean light", "rwq help recipes"),
    reads_only=True,
)
def show_help(
    settings: Settings,  # noqa: ARG001
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND|TOPIC]...",
            help=f"A command as in rwq clean light, or one of the topics {', '.join(Topic)}.",
        ),
    ] = None,
) -> Report:
    root = build_root()
    context: Any = typer.Context(root, info_name="rwq", **root.context_settings)
    given = list(words or ())
    if given[:1] and given[0] in set(Topic) and not given[1:]:
        formatter = context.make_formatter()
        write_page(topic_page(Topic(given[0])), formatter)
        return Text(formatter.getvalue())
    if given[:1] and given[0] not in COMMANDS and (near := get_close_matches(given[0], Topic, 1)):
        raise InvalidArgument(f"no command or topic {given[0]!r}", f"try rwq help {near[0]}")
    while given:
        if not hasattr(context.command, "resolve_command"):
            raise InvalidArgument(
                f"{context.command_path} has no command {given[0]!r}",
                f"see {context.command_path} --help",
            )
        name, command, given = context.command.resolve_command(context, given)
        context = typer.Context(command, info_name=name, parent=context, **command.context_settings)
    return Text(f"{context.get_help()}\n")
