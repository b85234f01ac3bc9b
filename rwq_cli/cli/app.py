"""The tree of commands. A command's module is imported only when it is run or its help is shown."""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup, TyperOption

from rwq_cli.cli.command import HELP_SETTINGS, Manual, RwqGroup, short_help
from rwq_cli.cli.global_options import global_options

# Every command, in the order and under the headings of `rwq --help`.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Adding items": ("add",),
    "Working on items": (
        *("work", "lease", "complete", "result", "touch", "release", "bury", "kick"),
        *("edit", "set", "rm", "mv", "purge", "undo"),
    ),
    "Inspecting": ("ls", "leases", "show", "stats", "queues", "top", "wait"),
    "Maintenance": ("clean", "doctor", "check", "export", "import"),
    "Tools": ("help", "man", "context", "local", "demo", "completion"),
}
COMMANDS = tuple(name for names in SECTIONS.values() for name in names)


class Root(RwqGroup):
    """`rwq` itself: loads a command when it is needed."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, COMMANDS))
        for heading, names in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(name.ljust(width), short_help(self.get_command(ctx, name))) for name in names]
                )

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        from rwq_cli.help.topics import SUMMARIES

        with formatter.section("Topics"):
            formatter.write_dl(
                [(f"rwq help {topic}", summary) for topic, summary in SUMMARIES.items()]
            )
        super().format_epilog(ctx, formatter)


@cache
def load_command(name: str) -> Any:
    """Import a command's module, which has a `CommandModule` in `app`, and build its parser.

    A parser keeps nothing of a command line, so that a process needs one only.
    """
    module = import_module(f"rwq_cli.commands.{name}")
    command: Any = typer.main.get_command(module.app.typer)
    command.name = name
    for _, leaf in leaves(command, ()):
        leaf.manual = leaf.callback.manual
        leaf.params.extend(global_options())
    if isinstance(command, TyperGroup):
        command.params.extend(global_options())
    return command


def leaves(command: Any, path: tuple[str, ...]) -> Iterable[tuple[tuple[str, ...], Any]]:
    """The commands below a command that have no subcommands, with their paths."""
    if isinstance(command, TyperGroup):
        for name, inner in command.commands.items():
            yield from leaves(inner, (*path, name))
    else:
        yield path, command


def _show_version(context: Any, _parameter: Any, value: bool) -> None:
    if value:
        from rwq_cli import __version__

        context.find_root().obj.environment.stdout.write(f"rwq {__version__}\n".encode())
        context.exit()


def build_root() -> Root:
    """The root command."""
    version = TyperOption(
        param_decls=["-V", "--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_version,
        help="Show the version.",
    )
    return Root(
        name="rwq",
        help="The command line for redis-work-queue: add items, lease them manually, see who "
        "holds what for how long, and clean up after dead workers, while workers run.",
        params=[*global_options(), version],
        rich_markup_mode=None,
        no_args_is_help=True,
        context_settings=HELP_SETTINGS,
    )


class CommandInfo(NamedTuple):
    """A command, for the reference and the completions.

    Attributes:
        path: Its name, with the group's, such as `clean light`.
        command: Its Typer object.
        manual: Its examples and exit codes.
    """

    path: str
    command: Any
    manual: Manual


def all_commands() -> list[CommandInfo]:
    """Every command except groups, in the order of the help."""
    return [
        CommandInfo(" ".join(path), leaf, leaf.manual)
        for name in COMMANDS
        for path, leaf in leaves(load_command(name), (name,))
    ]
