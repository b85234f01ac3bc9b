"""`rwq rm`: remove items."""

from rwq_cli.cli.choosing import Choice, SelectionScope, selects
from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.options import DryRunOption, YesOption
from rwq_cli.cli.settings import Settings
from rwq_cli.commands.undoing import Undo
from rwq_cli.core.inspect.selection import ITEMS
from rwq_cli.core.items.remove import remove
from rwq_cli.core.model import Status
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.views.outcomes import OUTCOME_FIELDS, kind_of

app = CommandModule()

_SCOPE = SelectionScope(default=ITEMS, everything=ITEMS, offered=ITEMS)
_KIND = kind_of(Status.REMOVED, (Status.MISSING,))


@app.command(
    record=OUTCOME_FIELDS,
    destructive=True,
    help="Remove items in any state, even leased ones, without completing them. They are "
    "written to an undo file first. Without --state, options choose items in any state.",
    examples=(
        "rwq rm -q jobs --yes 4f2a9c",
        "rwq rm -q jobs --where tenant.id=3 --dry-run -o ids",
        "rwq rm -q jobs --state abandoned --older-than 1h --yes",
    ),
    exits={
        ExitStatus.NO: "none was removed: gone, or declined",
        ExitStatus.PARTIAL: "some were not removed",
    },
)
@selects(_SCOPE)
def rm(
    settings: Settings,
    choice: Choice,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> ExitStatus:
    queue = open_queue(settings)
    undo = Undo(settings, queue, "rm")
    with undo.outcomes(_KIND, dry_run=dry_run) as out:
        chosen = choice.choose(queue, settings, confirm=None if dry_run else "remove {}", yes=yes)
        for batch in remove(
            queue, chosen.ids, undo, expected=chosen.expected, dry_run=dry_run
        ).batches:
            out.rows(batch)
    return out.finish(undo_file=undo.name)
