"""`rwq rm`: remove items."""

from functools import partial

from rwq_cli.cli.choosing import Choice, selects
from rwq_cli.cli.reports import OUTCOME_FIELDS, make_outcome_kind
from rwq_cli.commands import ExitStatus, Settings, command
from rwq_cli.commands.undoing import Undo
from rwq_cli.core.inspect.selection import ITEMS
from rwq_cli.core.items.complete import remove
from rwq_cli.core.model import Status

_KIND = make_outcome_kind(Status.REMOVED, (Status.MISSING,))


@command(record=OUTCOME_FIELDS, destructive=True, no="none was removed: gone, or declined")
@selects(ITEMS)
def rm(_: Settings, choice: Choice) -> ExitStatus:
    """Remove items in any state, even leased ones, without completing them. They are written to an
    undo file first. Without --state, options choose items in any state.

    rwq rm -q jobs --yes 4f2a9c
    rwq rm -q jobs --where tenant.id=3 --dry-run -o ids
    rwq rm -q jobs --state abandoned --older-than 1h --yes
    """
    undo = partial(Undo, verb="rm")
    return choice.act(remove, _KIND, "remove {}", takes_all=True, undo=undo)
