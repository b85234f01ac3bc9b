"""Generates parts of the README: states, findings, recipes, and the reference of the commands.

`python -m rwq_cli.cli.reference README.md` replaces the text between their markers; a test checks
that it is current.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from rwq_cli.cli.app import SECTIONS, CommandInfo, all_commands, build_root
from rwq_cli.cli.command import PLAIN_HEADING, help_record
from rwq_cli.cli.global_options import GLOBAL_NAMES, global_options
from rwq_cli.core.repair.doctor import AUTO_FIXABLE
from rwq_cli.core.repair.findings import Code
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.help.recipes import RECIPES
from rwq_cli.help.variables import VARIABLES
from rwq_cli.views.remedies import REMEDIES
from rwq_cli.views.states import STATES

_GENERATED_BY = "made by python -m rwq_cli.cli.reference README.md"


def reference() -> str:
    """The reference as Markdown: commands, common options, exit codes, environment variables."""
    commands = {described.path: described for described in all_commands()}
    parts = []
    for heading, names in SECTIONS.items():
        parts.append(f"### {heading}\n")
        for path, described in commands.items():
            if path.split()[0] in names:
                parts.append(_command(described))
    parts.append("### Common options\n\nBefore the command's name or after it.\n")
    parts.append(_options(global_options(), typer.Context(build_root())))
    parts.append("### Exit codes\n")
    rows = [f"| {int(status)} | {status.meaning} |" for status in ExitStatus]
    parts.append("\n".join(["| code | meaning |", "| --- | --- |", *rows]) + "\n")
    parts.append("### Environment variables\n")
    rows = [
        f"| `{names.replace(', ', '`, `')}` | {meaning} |"
        for group in VARIABLES.values()
        for names, meaning in group.items()
    ]
    parts.append("\n".join(["| variable | meaning |", "| --- | --- |", *rows]) + "\n")
    return "\n".join(parts)


def _command(described: CommandInfo) -> str:
    context = typer.Context(described.command, info_name=f"rwq {described.path}")
    usage = " ".join(described.command.collect_usage_pieces(context))
    lines = [f"#### `rwq {described.path}`\n", f"{described.command.help}\n"]
    changes = " Changes nothing." if described.manual.reads_only else ""
    lines.append(f"`rwq {described.path} {usage}`{changes}\n")
    own = [
        parameter
        for parameter in described.command.params
        if parameter.name not in (*GLOBAL_NAMES, "help")
    ]
    if own:
        lines.append(_options(own, context))
    if plain := described.manual.plain:
        rows = "; ".join(f"{record}: {names}" for record, names in plain.items())
        lines.append(f"{PLAIN_HEADING.replace('-o plain', '`-o plain`')}: {rows}.\n")
    exits = "; ".join(f"{int(status)} {text}" for status, text in described.manual.exits.items())
    if exits:
        lines.append(f"Exit: {exits}.\n")
    examples = "\n".join(described.manual.examples)
    lines.append(f"```text\n{examples}\n```\n")
    return "\n".join(lines)


def _options(parameters: Sequence[Any], context: Any) -> str:
    rows = ["| option | meaning |", "| --- | --- |"]
    for parameter in parameters:
        record = help_record(parameter, context)
        if record is None:
            continue
        names, help = (" ".join(text.split()).replace("|", "\\|") for text in record)
        rows.append(f"| `{names}` | {help} |")
    return "\n".join(rows) + "\n"


def states() -> str:
    """The table of the states, as Markdown."""
    rows = ["| state | what the server holds | what happens next |", "| --- | --- | --- |"]
    rows += [f"| `{state}` | {known.holds} | {known.next} |" for state, known in STATES.items()]
    return "\n".join(rows) + "\n"


def recipes() -> str:
    """The recipes, as Markdown."""
    return "\n".join(
        f"**{one.title}.** {one.text}\n\n```text\n" + "\n".join(one.commands) + "\n```\n"
        for one in RECIPES
    )


def findings() -> str:
    """The table of the doctor's findings, as Markdown."""
    rows = ["| code | severity | what it is | `--fix` |", "| --- | --- | --- | --- |"]
    for code in Code:
        remedy = REMEDIES[code]
        outcome = "fixed" if code in AUTO_FIXABLE else "left"
        if remedy.left_because:
            outcome += f"{'; left where' if code in AUTO_FIXABLE else ':'} {remedy.left_because}"
        rows.append(f"| `{code.value}` | {code.severity.value} | {remedy.cause} | {outcome} |")
    return "\n".join(rows) + "\n"


def with_generated_parts(text: str) -> str:
    """The README's text with the generated parts replaced."""
    for part in (states, findings, recipes, reference):
        begin, end = (
            f"<!-- {part.__name__}: {_GENERATED_BY} -->",
            f"<!-- end of the {part.__name__} -->",
        )
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n\n{part()}\n{end}{rest.partition(end)[2]}"
    return text


def main() -> None:
    """Update the file."""
    file = Path(sys.argv[1])
    file.write_text(with_generated_parts(file.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
