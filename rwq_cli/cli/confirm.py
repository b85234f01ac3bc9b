"""Questions before a destructive action, asked on the terminal.

Which confirmation is required depends on the server's context: see `Protection`.
"""

import os
import re
import termios
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from rwq_cli.cli.settings import Settings
from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import InvalidArgument, RwqError
from rwq_cli.core.inspect.counting import count_leased
from rwq_cli.core.queue import WorkQueue
from rwq_cli.environment import has_terminal, open_terminal
from rwq_cli.output import human
from rwq_cli.output.escape import escaped

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# From this many items on, the user has to type the queue's name.
NAME_FROM_ITEMS = 1000


class Declined(RwqError):
    """The user said no."""

    code = "declined"


def is_confirmed(settings: Settings, *, yes: bool) -> bool:
    """True if `--yes` or `--yes=NAME` confirms a destructive action, so that nothing is asked.

    Raises:
        InvalidArgument: There is no terminal to ask on, and `--yes` has to name the context.
    """
    context, named = settings.protecting_context, settings.given.get("yes_for")
    if not yes or context is None or not context.is_protected:
        return yes
    if named is not None or has_terminal():
        return named is not None
    if context.requires_name:
        raise InvalidArgument(
            f"context {context.name} is protected", f"use --yes={context.name} to confirm"
        )
    return True


def confirm(
    settings: Settings,
    what: str,
    items: int,
    queue: str,
    *,
    leased: int = 0,
    note: str = "",
    ask: Callable[[str], str] | None = None,
) -> None:
    """Return only if the user agrees.

    Args:
        settings: The run's settings, which name the server.
        what: The action, in which `{}` stands for the items, such as `remove {}`.
        items: The number of items; without any, nothing is asked.
        queue: The queue's name, escaped.
        leased: How many of them are leased.
        note: More about the items, in parentheses.
        ask: Asks a question and returns the answer; None asks on the terminal.

    Raises:
        Declined: The answer was no.
        InvalidArgument: There is no terminal to ask on.
    """
    if not items:
        return
    if leased:
        note += f" ({human.count(leased)} of them leased)"
    named = f"{human.count(items)} {'item' if items == 1 else 'items'} of {queue}{note}"
    question = f"rwq will {what.replace('{}', named, 1)} on {_server(settings)}. "
    to_type = {"queue": queue} if items >= NAME_FROM_ITEMS else {}
    yes = "--yes"
    context = settings.protecting_context
    if context is not None and context.requires_name:
        to_type["context"] = context.name
        yes = f"--yes={context.name}"
    ask = ask or (lambda text: _ask_on_terminal(text, yes))
    for whose, name in to_type.items():
        answer = ask(f"{question}Type the {whose}'s name to continue: ")
        _agree(answer.rstrip("\r\n") == name)
        question = ""
    if not to_type:
        _agree(_is_yes(ask(f"{question}Continue? [y/N] ")))


def confirm_action(question: str) -> None:
    """Ask a question that is not about items; see `confirm`."""
    _agree(_is_yes(_ask_on_terminal(f"{question} Continue? [y/N] ", "--yes")))


def confirm_ids(
    settings: Settings,
    what: str,
    ids: Iterable[bytes | Flush],
    queue: WorkQueue,
    affected: Callable[[Sequence[bytes]], Sequence[bytes]],
) -> list[bytes]:
    """Return the IDs, each once, only if the user agrees; see `confirm`.

    All are read first; `affected` returns those that the question counts.
    """
    known = list(dict.fromkeys(item_id for item_id in ids if not isinstance(item_id, Flush)))
    counted = affected(known)
    leased = count_leased(queue, counted)
    queue.progress.hide()
    confirm(settings, what, len(counted), escaped(queue.name), leased=leased)
    return known


def _is_yes(answer: str) -> bool:
    return answer.strip().lower() in ("y", "yes")


def _agree(has_agreed: bool) -> None:
    if not has_agreed:
        raise Declined("declined, nothing was changed")


def _server(settings: Settings) -> str:
    """The server's name for a question; a context's has its colour."""
    label, context = settings.server_label, settings.protecting_context
    if context is None:
        return label
    name = context.name
    if context.color is not None and settings.wants_colour(is_terminal=True):
        from rwq_cli.output.console import styled

        name = styled(name, f"bold {context.color}")
    return name if settings.server.context is not None else f"{label} (context {name})"


def _wrapped(question: str, columns: int) -> str:
    """The question on lines shorter than the terminal; its last sentence has one of its own."""
    from rwq_cli.output.console import width

    if width(_COLOUR.sub("", question)) < columns:
        return question
    about, stop, asks = question.rpartition(". ")
    lines = [""]
    for word in f"{about}{stop}".split():
        longer = f"{lines[-1]} {word}".lstrip()
        if lines[-1] and width(_COLOUR.sub("", longer)) >= columns:
            lines.append(word)
        else:
            lines[-1] = longer
    return "\n".join([*lines, asks])


def _ask_on_terminal(question: str, yes: str) -> str:
    """Ask on `/dev/tty`: stdin may be a pipe of IDs, and stdout a file."""
    try:
        terminal = open_terminal()
    except OSError:
        raise InvalidArgument(
            "this needs confirmation, and there is no terminal to ask on", f"use {yes}"
        )
    try:
        # Discard what was typed before the question.
        with suppress(termios.error):
            termios.tcflush(terminal, termios.TCIFLUSH)
        with suppress(OSError):
            question = _wrapped(question, os.get_terminal_size(terminal).columns or 1 << 16)
        os.write(terminal, question.encode())
        answer = b""
        while not answer.endswith(b"\n"):
            piece = os.read(terminal, 1024)
            if not piece:
                # Ctrl-D leaves the cursor on the line of the question.
                os.write(terminal, b"\n")
                break
            answer += piece
        return answer.decode("utf-8", "replace")
    finally:
        os.close(terminal)
