"""Questions before a destructive action, asked on the terminal.

Which confirmation is required depends on the server's context: see `Protection`.
"""

import os
import re
import termios
from contextlib import suppress

from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument, RwqError
from rwq_cli.environment import has_terminal, open_terminal
from rwq_cli.output import human

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# From this many items on, the user has to type the queue's name.
MANY = 1000


class Declined(RwqError, code="declined"): ...


def is_confirmed(settings: Settings, *, yes: bool) -> bool:
    """Return True if `--yes` or `--yes=NAME` confirms a destructive action: nothing is asked."""
    settings.check_yes_for()
    context, confirmed_name = settings.asking_context, settings.common_options.get("yes_for")
    if not yes or context is None or not context.protection_level:
        return yes
    if confirmed_name is None and has_terminal():
        return False
    if context.protect == "type" and confirmed_name != context.name:
        raise InvalidArgument(f"{context} is protected", f"use --yes={context.name} to confirm")
    return True


def must_ask(settings: Settings, items: int) -> bool:
    """Return True if what is asked for its size only has to be asked: a script is let through."""
    context = settings.asking_context
    is_protected = context is not None and context.protection_level > 0
    return is_protected or (items >= MANY and has_terminal())


def confirm(
    settings: Settings, what: str, items: int, queue: str, *, leased: int = 0, note: str = ""
) -> None:
    """Return only if the user agrees to an action `what`, such as `remove {}`, on these items."""
    # `leased` is how many of the `items` are leased, and `note` says more about them. Without
    # items, nothing is asked. Raises `Declined`, or `InvalidArgument` without a terminal to ask on.
    if not items:
        return
    if leased:
        note += f" ({human.count(leased)} of them leased)"
    items_of_queue = f"{human.counted(items, 'item')} of {queue}{note}"
    where = f" on {describe_server(settings)}"
    if settings.second_server is not None:
        # The action names the other server.
        items_of_queue, where = items_of_queue + where, ""
    question = f"rwq will {what.replace('{}', items_of_queue, 1)}{where}."
    confirm_action(settings, question, items=items, queue=queue)


def confirm_action(
    settings: Settings,
    question: str,
    prompt: str = "Continue? ",
    *,
    items: int = 0,
    queue: str = "",
) -> None:
    """Ask for what agreement takes: the name of a context that is protected by it, whatever the
    action; else the queue's if there are many items; else y or n.

    Args:
        prompt: What follows the question, before `[y/N]`.
    """
    whose, name, yes = "", "", "--yes"
    context = settings.asking_context
    if context is not None and context.protect == "type":
        whose = "context" if context is settings.protecting_context else "other context"
        name, yes = context.name, f"--yes={context.name}"
    elif items >= MANY:
        whose, name = "queue", queue
    if whose:
        answer = _ask_on_terminal(question, f"Type the {whose}'s name to continue: ", yes)
        has_agreed = answer.rstrip("\r\n") == name
    else:
        answer = _ask_on_terminal(question, f"{prompt}[y/N] ", yes)
        has_agreed = answer.strip().lower() in ("y", "yes")
    if not has_agreed:
        raise Declined("declined; what was asked about is unchanged")


def describe_server(settings: Settings) -> str:
    label, context = settings.server_label, settings.protecting_context
    if context is None:
        return label
    name = context.name
    if context.color is not None and settings.wants_colour(is_terminal=True):
        from rwq_cli.output.console import apply_style

        name = apply_style(name, f"bold {context.color}")
    return name if settings.server.context is not None else f"{label} (context {name})"


def _ask_on_terminal(question: str, asks: str, yes: str) -> str:
    """Ask on `/dev/tty`: stdin may be a pipe of IDs, and stdout a file."""
    try:
        descriptor = open_terminal()
    except OSError:
        raise InvalidArgument(
            "this needs confirmation, and there is no terminal to ask on: "
            + _COLOUR.sub("", question).rstrip("."),
            f"use {yes}",
        )
    with open(descriptor, "r+b", buffering=0) as terminal:
        # Discard what was typed before the question.
        with suppress(termios.error):
            termios.tcflush(terminal, termios.TCIFLUSH)
        text, columns = f"{question} {asks}".lstrip(), 0
        with suppress(OSError):
            columns = os.get_terminal_size(descriptor).columns
        if columns and len(_COLOUR.sub("", text)) >= columns:
            from rwq_cli.output.console import wrap_styled

            text = f"{wrap_styled(question, columns)}\n{asks}".lstrip()
        terminal.write(text.encode())
        answer = terminal.readline()
        if not answer.endswith(b"\n"):
            # Ctrl-D leaves the cursor on the line of the question.
            terminal.write(b"\n")
        return answer.decode("utf-8", "replace")
