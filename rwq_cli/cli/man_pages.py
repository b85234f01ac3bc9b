"""The man pages of all commands and topics, made from what their help is made from."""

import re
from collections.abc import Iterator
from typing import Any

from rwq_cli import __version__
from rwq_cli.cli.app import SECTIONS
from rwq_cli.cli.command import PLAIN_HEADING, Manual, parameter_rows
from rwq_cli.cli.help_subjects import inner_contexts, root_context
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.help.page import Page, PageSection
from rwq_cli.help.roff import roff
from rwq_cli.help.topics import SUMMARIES, Topic, topic_page


def man_page(subject: Any) -> tuple[str, str]:
    """The name of a man page, such as `rwq-ls`, and its source.

    Args:
        subject: A `Topic`, or the parser's context of a command.
    """
    if isinstance(subject, Topic):
        name = f"rwq-{subject}"
        page = topic_page(subject)
        return name, roff(name, page, __version__)
    name = _name(subject)
    pieces = " ".join(subject.command.collect_usage_pieces(subject))
    synopsis = f"`{subject.command_path}` {pieces}"
    return name, roff(name, _command_page(subject), __version__, synopsis)


def all_man_pages() -> Iterator[tuple[str, str]]:
    """The name and the source of every page."""
    contexts = [root_context()]
    while contexts:
        context = contexts.pop(0)
        yield man_page(context)
        contexts += inner_contexts(context)
    for topic in Topic:
        yield man_page(topic)


def _name(context: Any) -> str:
    return str(context.command_path).replace(" ", "-")


def _command_page(context: Any) -> Page:
    command = context.command
    manual: Manual | None = getattr(command, "manual", None)
    text = command.help
    if manual and manual.reads_only:
        text += " It changes nothing on the server."
    sections = [*_commands(context), *_parameters(context)]
    exits = manual.all_exits if manual else {status: status.meaning for status in ExitStatus}
    sections.append(
        PageSection("Exit status", rows=[(f"`{int(code)}`", text) for code, text in exits.items()])
    )
    if manual and manual.plain:
        sections.append(PageSection(PLAIN_HEADING, rows=list(manual.plain.items())))
    if manual:
        sections.append(PageSection("Examples", code=manual.examples))
    if context.parent is None:
        rows = [(f"`rwq-{topic}`(1)", summary) for topic, summary in SUMMARIES.items()]
        sections.append(PageSection("Topics", rows=rows))
    else:
        groups = [_name(context.parent)] if context.parent.parent else []
        names = ["rwq", *groups, *(f"rwq-{topic}" for topic in Topic)]
        sections.append(PageSection("See also", text=", ".join(f"`{name}`(1)" for name in names)))
    summary = command.get_short_help_str(limit=200).removesuffix(".")
    return Page(summary, text, sections)


def _commands(context: Any) -> Iterator[PageSection]:
    """The commands of a group, under the headings of the help."""
    inner = {one.info_name: one for one in inner_contexts(context)}
    if not inner:
        return
    headings = SECTIONS if context.parent is None else {"Commands": tuple(inner)}
    for heading, names in headings.items():
        rows = [
            (f"`{_name(inner[name])}`(1)", inner[name].command.get_short_help_str(limit=200))
            for name in names
        ]
        yield PageSection(heading, rows=rows)


def _parameters(context: Any) -> Iterator[PageSection]:
    for heading, rows in parameter_rows(context.command, context).items():
        yield PageSection(heading, rows=[(_marked_up(names), text) for names, text in rows])


def _marked_up(names: str) -> str:
    """The names of an option as code, as in `-q`, `--queue` NAME."""
    return re.sub(r"(?<!\S)(-[^\s,]+)", r"`\1`", names)
