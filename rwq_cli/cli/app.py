"""The tree of commands. A command's module is imported only when it is named or helped with."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from rwq_cli.cli.global_options import GLOBAL_NAMES, global_options
from rwq_cli.cli.interrupts import end_in_order
from rwq_cli.cli.manual import Manual
from rwq_cli.exit_codes import ExitStatus

F = TypeVar("F", bound=Callable[..., Any])

# Every command, in the order and under the headings of `rwq --help`.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Putting in": ("add",),
    "By hand": (
        "lease",
        "complete",
        "result",
        "touch",
        "release",
        "bury",
        "kick",
        "rm",
        "mv",
        "purge",
        "undo",
    ),
    "Looking": ("ls", "leases", "show", "stats", "queues", "wait"),
    "Keeping it healthy": ("clean", "doctor", "check", "export", "import"),
    "Around it": ("local", "demo", "completion"),
}
COMMANDS = tuple(name for names in SECTIONS.values() for name in names)


class HelpfulCommand(TyperCommand):
    """A command whose help ends with examples and exit codes."""

    manual: Manual | None = None

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        # Known before the options are read, because they may be what is wrong.
        if parent is not None and parent.obj is not None and self.manual is not None:
            parent.obj.monitors = self.manual.monitors
        return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        # What has to be loaded for it is loaded.
        end_in_order()
        return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        _write_options(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        if self.manual is None:
            return
        with formatter.section("Examples"):
            for example in self.manual.examples:
                formatter.write(f"  {example}\n")
        with formatter.section("Exit codes"):
            formatter.write_dl(
                [(str(int(status)), said) for status, said in self.manual.all_exits.items()]
            )


class HelpfulGroup(TyperGroup):
    """A command with commands of its own."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(status)), status.meaning) for status in ExitStatus])

    def format_options(self, ctx: Any, formatter: Any) -> None:
        self.format_commands(ctx, formatter)
        _write_options(self, ctx, formatter)


class Root(HelpfulGroup):
    """`rwq` itself: loads a command when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        if cmd_name not in self.commands:
            self.commands[cmd_name] = load_command(cmd_name)
        return self.commands[cmd_name]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        # Typer looks for near misses among the commands that are loaded.
        if args and args[0] not in COMMANDS:
            for name in COMMANDS:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, COMMANDS))
        for heading, names in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(name.ljust(width), _short(self.get_command(ctx, name))) for name in names]
                )


def _short(command: Any) -> str:
    return str(command.get_short_help_str(limit=200))


def help_record(parameter: Any, ctx: Any) -> tuple[str, str] | None:
    """The names and the help of an option or argument; None where it is hidden."""
    record = parameter.get_help_record(ctx)
    if record is None:
        return None
    names, said = record
    # Typer adds the range of a number to its default: [default: 50; x>=0].
    return names, re.sub(r"  \[x>=\d+\]", "", re.sub(r"; x>=\d+\]", "]", said))


def _write_options(command: Any, ctx: Any, formatter: Any) -> None:
    own: list[tuple[str, str]] = []
    common: list[tuple[str, str]] = []
    arguments: list[tuple[str, str]] = []
    for parameter in command.get_params(ctx):
        record = help_record(parameter, ctx)
        if record is None:
            continue
        if parameter.param_type_name == "argument":
            arguments.append(record)
        else:
            (common if parameter.name in GLOBAL_NAMES else own).append(record)
    for heading, rows in (("Arguments", arguments), ("Options", own), ("Common options", common)):
        if rows:
            with formatter.section(heading):
                formatter.write_dl(rows)


class App(typer.Typer):
    """A Typer application whose commands have our help."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[F], F]:
        register: Callable[[F], F] = super().command(name, cls=HelpfulCommand, **settings)
        return register


def new_app(**settings: Any) -> App:
    """The Typer application of one command module."""
    return App(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        **settings,
    )


def load_command(name: str) -> Any:
    """Import a command's module and build its parser.

    The module has an `app` and, for each of its commands, a manual in `MANUALS`.
    """
    module = import_module(f"rwq_cli.commands.{name}")
    command: Any = typer.main.get_command(module.app)
    command.name = name
    for path, leaf in leaves(command, ()):
        leaf.manual = module.MANUALS[" ".join((name, *path))]
        leaf.params.extend(global_options())
    if isinstance(command, TyperGroup):
        command.params.extend(global_options())
    return command


def leaves(command: Any, path: tuple[str, ...]) -> Iterable[tuple[tuple[str, ...], Any]]:
    """The commands below one that have no commands of their own, with their paths."""
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
    from typer.core import TyperOption

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
        help="The command line for redis-work-queue: put items in, take them by hand, see who "
        "holds what for how long, and clean up after dead workers, beside workers in any language.",
        params=[*global_options(), version],
        rich_markup_mode=None,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


@dataclass(frozen=True)
class Described:
    """A command as the README and the completions need it.

    Attributes:
        path: The words that name it, such as `clean light`.
        command: The parser's own object.
        manual: Its examples and exit codes.
    """

    path: str
    command: Any
    manual: Manual


def all_commands() -> list[Described]:
    """Every command that can be run, in the order of the help."""
    described = []
    for name in COMMANDS:
        for path, leaf in leaves(load_command(name), (name,)):
            described.append(Described(" ".join(path), leaf, leaf.manual))
    return described
