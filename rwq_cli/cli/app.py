"""The tree of commands. A command's module is imported only when it is run or its help is shown."""

from functools import cache
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperOption

from rwq_cli import __version__
from rwq_cli.cli.command import (
    HELP_SETTINGS,
    RwqGroup,
    add_declared,
    describe_exits,
    is_narrow,
    write_rows,
)
from rwq_cli.exit_codes import ExitStatus

# Every command with a summary of at most 50 characters, in the order and under the headings of
# `rwq --help`.
SECTIONS: dict[str, dict[str, str]] = {
    "Adding items": {"add": "Add items from arguments, files or stdin."},
    "Working on items": {
        "work": "Run a command for each item, as xargs does.",
        "lease": "Lease the next items and print them.",
        "complete": "Complete items: remove them as done.",
        "result": "Show the result that complete stored.",
        "touch": "Renew live leases.",
        "release": "End leases and return the items to the queue.",
        "bury": "Set items aside, with a reason.",
        "kick": "Return buried items to the queue.",
        "edit": "Edit the data of an item, or replace it.",
        "rm": "Remove items without completing them.",
        "mv": "Move items to another queue.",
        "purge": "Remove a queue with all its keys.",
        "undo": "Restore what was removed or replaced last.",
    },
    "Inspecting": {
        "ls": "List items, the next to be leased first.",
        "leases": "List who holds which items, and for how long.",
        "show": "Explain items: state, reasons, what is next.",
        "tail": "Show what happens to items, as it happens.",
        "stats": "Count a queue's items by state.",
        "queues": "List the queues of a server with their counts.",
        "history": "Show the counts of the last hours or days.",
        "diff": "Compare two queues, on one server or two.",
        "top": "Show queues live, on the whole terminal.",
        "wait": "Wait until a queue is empty or items are gone.",
    },
    "Maintenance": {
        "clean": "Return what dead workers left behind.",
        "doctor": "Find what is wrong with a queue, and fix it.",
        "check": "Compare counts with limits, for monitoring.",
        "export": "Write a whole queue as JSON lines.",
        "import": "Restore what rwq export wrote.",
    },
    "Tools": {
        "help": "Show the help of a command, or a topic.",
        "context": "Name servers, with queue and protection.",
        "local": "Start, stop or inspect the embedded server.",
        "demo": "Show the main commands on a throwaway server.",
        "completion": "Print or install shell completion.",
    },
}
SUMMARIES = {name: text for commands in SECTIONS.values() for name, text in commands.items()}
COMMANDS = tuple(SUMMARIES)


class Root(RwqGroup):
    """`rwq` itself, which loads each command on demand."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def summaries(self) -> dict[str, str]:
        return SUMMARIES

    def format_help(self, ctx: Any, formatter: Any) -> None:
        from rwq_cli.topics import TOPICS

        usage = "[-V | --version] [-h | --help] COMMAND [ARG...]"
        formatter.write_usage(ctx.command_path, usage)
        heading_width, name_width = max(map(len, SECTIONS)), max(map(len, COMMANDS))
        rows = []
        for heading, commands in SECTIONS.items():
            for number, (name, summary) in enumerate(commands.items()):
                label = "" if number else heading
                rows.append((f"{label:{heading_width}}  {name:{name_width}}", summary))
        if is_narrow(formatter, rows):
            for heading, commands in SECTIONS.items():
                with formatter.section(heading):
                    write_rows(formatter, list(commands.items()))
        else:
            formatter.write_paragraph()
            formatter.write_dl(rows)
        formatter.write_paragraph()
        exits = describe_exits({status: status.summary for status in ExitStatus})
        topics = f"rwq help {', '.join(TOPICS)}"
        write_rows(formatter, [("Topics:", topics), ("Exit codes:", exits)])


@cache
def load_command(name: str) -> Any:
    """Load the parser of a command's module: its command, or its group if it has `GROUP_HELP`."""
    # It keeps no state of a command line, so a process needs only one.
    module = import_module(f"rwq_cli.commands.{name}")
    commands = typer.Typer(
        cls=RwqGroup,
        help=getattr(module, "GROUP_HELP", None),
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=HELP_SETTINGS,
    )
    add_declared(module.__name__, commands)
    command = typer.main.get_command(commands)
    command.name = name
    return command


def _show_version(context: Any, _parameter: Any, value: bool) -> None:
    if value:
        context.obj.environment.stdout.write(f"rwq {__version__}\n".encode())
        context.exit()


def build_root() -> Root:
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
        params=[version],
        rich_markup_mode=None,
        no_args_is_help=True,
        context_settings=HELP_SETTINGS,
    )
