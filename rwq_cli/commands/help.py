"""`rwq help`: how to begin, the help of a command, or a topic."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any

import typer

from rwq_cli.cli.app import COMMANDS, build_root
from rwq_cli.cli.command import help_width, write_rows
from rwq_cli.cli.options import make_common_options
from rwq_cli.cli.unknown_words import SYNONYM_HINTS
from rwq_cli.commands import InvalidArgument, Settings, argument, command
from rwq_cli.exit_codes import ExitCode, ExitStatus, MonitoringStatus
from rwq_cli.topics import RECIPES, TOPICS, VARIABLES, overview
from rwq_cli.views.meanings import STATES


@command(reads_only=True)
def help_(
    settings: Settings,
    words: Annotated[
        list[str] | None,
        argument(
            "[COMMAND|TOPIC...]",
            f"A command, as in clean light, or a topic: {', '.join(TOPICS)}.",
            offer=lambda: [*COMMANDS, *TOPICS],
        ),
    ] = None,
) -> None:
    """Show the help of a command, or a topic; without either, the commands that most people want
    first.

    rwq help
    rwq help clean light
    rwq help recipes
    """
    if not words:
        settings.out.text(overview(settings.environment.width))
        return
    root = _context(build_root(), "rwq", None)
    root.terminal_width = help_width(settings.environment)
    if words[0] not in TOPICS:
        settings.out.text(f"{_find_command(root, words).get_help()}\n")
        return
    if len(words) > 1:
        raise InvalidArgument(f"{words[0]} is a topic, not a group", f"leave out {words[1]}")
    formatter = root.make_formatter()
    records = (option.get_help_record(root) for option in make_common_options())
    _write_topic(words[0], formatter, filter(None, records))
    settings.out.text(formatter.getvalue())


def _find_command(context: Any, words: list[str]) -> Any:
    word, topics = words[0], (*TOPICS, "topics")
    near = get_close_matches(word, topics, 1)
    if word not in COMMANDS and (near or not get_close_matches(word, [*COMMANDS, *SYNONYM_HINTS])):
        is_topic = near and near[0] in TOPICS and word not in ("topic", "topics")
        hint = f"try rwq help {near[0]}" if is_topic else f"the topics are {', '.join(TOPICS)}"
        raise InvalidArgument(f"no command or topic {word!r}", hint)
    rest = words
    while rest:
        if not hasattr(context.command, "resolve_command"):
            raise InvalidArgument(
                f"{context.command_path} has no command {rest[0]!r}",
                f"see {context.command_path} --help",
            )
        name, command, rest = context.command.resolve_command(context, rest)
        context = _context(command, name, context)
    return context


def _context(command: Any, name: str, parent: Any) -> Any:
    return typer.Context(command, info_name=name, parent=parent, **command.context_settings)


def _write_topic(topic: str, formatter: Any, options: Iterable[tuple[str, str]]) -> None:
    def meanings(codes: Iterable[ExitCode]) -> list[tuple[str, str]]:
        return [(str(int(code)), code.meaning) for code in codes]

    states = [
        (state, f"{meaning.meaning} On the server: {meaning.holds}. Next: {meaning.next}.")
        for state, meaning in STATES.items()
    ]
    of_check = "Exit codes of rwq check, those of a monitoring plugin"
    tables: Mapping[str, Mapping[str, Iterable[tuple[str, str]]]] = {
        "options": {"Options": options},
        "states": {"States, in a queue named jobs": states},
        "exit-codes": {"Exit codes": meanings(ExitStatus), of_check: meanings(MonitoringStatus)},
        "environment": {heading: entries.items() for heading, entries in VARIABLES.items()},
        "recipes": {},
    }
    formatter.write_text(TOPICS[topic])
    for heading, rows in tables[topic].items():
        with formatter.section(heading):
            write_rows(formatter, [(term, text.replace("`", "")) for term, text in rows])
    for recipe in RECIPES if topic == "recipes" else ():
        with formatter.section(recipe.title):
            formatter.write_text(recipe.text.replace("`", ""))
            formatter.write_paragraph()
            for line in recipe.commands:
                formatter.write(f"    {line}\n")
