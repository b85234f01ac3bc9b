"""Asks for confirmation of a destructive action, on the terminal."""

import os
from collections.abc import Callable, Iterable

from rwq_cli.core.batches import Flush
from rwq_cli.core.errors import InvalidArgument, RwqError
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output import human
from rwq_cli.output.escape import escaped

# From this many items on, the user has to type the queue's name.
NAME_FROM_ITEMS = 1000


class Declined(RwqError):
    """The user said no."""

    code = "declined"


def confirm(
    what: str, items: int, queue: str, *, note: str = "", ask: Callable[[str], str] | None = None
) -> None:
    """Return only if the user agrees.

    The question goes to `/dev/tty`: stdin may be a pipe of IDs, and stdout a file.

    Args:
        what: The action, in which `{}` stands for the items, such as `remove {}`.
        items: The number of items.
        queue: The queue's name, escaped.
        note: More about the items, such as `, 3 of them leased`.
        ask: Asks a question and returns the answer; None asks on the terminal.

    Raises:
        Declined: The answer was no.
        InvalidArgument: There is no terminal to ask on.
    """
    if not items:
        return
    noun = "item" if items == 1 else "items"
    named = f"{human.count(items)} {noun} of {queue}{note}"
    question = f"rwq will {what.replace('{}', named, 1)}."
    ask = ask or _ask_on_terminal
    if items >= NAME_FROM_ITEMS:
        agreed = ask(f"{question} Type the queue's name to continue: ").rstrip("\r\n") == queue
    else:
        agreed = ask(f"{question} Continue? [y/N] ").strip().lower() in ("y", "yes")
    if not agreed:
        raise Declined("declined, nothing was changed")


def confirm_action(question: str) -> None:
    """Ask a question that is not about items, and return only if the user agrees.

    Raises:
        Declined: The answer was no.
        InvalidArgument: There is no terminal to ask on.
    """
    if _ask_on_terminal(f"{question} Continue? [y/N] ").strip().lower() not in ("y", "yes"):
        raise Declined("declined, nothing was changed")


def confirm_ids(what: str, ids: Iterable[bytes | Flush], queue: WorkQueue) -> list[bytes]:
    """Return the IDs, each once, only if the user agrees; see `confirm`.

    All IDs are read first: the question says how many items there are, and how many are leased.
    """
    known = list(dict.fromkeys(item_id for item_id in ids if not isinstance(item_id, Flush)))
    leased = queue.count_leased(known)
    queue.progress.hide()
    note = f", {human.count(leased)} of them leased" if leased else ""
    confirm(what, len(known), escaped(queue.name), note=note)
    return known


def _ask_on_terminal(question: str) -> str:
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
    except OSError:
        raise InvalidArgument(
            "this needs confirmation, and there is no terminal to ask on", "use --yes"
        )
    try:
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
