"""`rwq set`: replace the data of an item."""

from typing import Annotated

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.completing import offer_ids
from rwq_cli.cli.connect import open_queue
from rwq_cli.cli.options import DryRunOption, YesToReplaceOption, option, parse_id
from rwq_cli.cli.settings import Settings
from rwq_cli.commands.replacing import ask_about_data, data_report, item_to_change
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.input.payload import read_payload
from rwq_cli.output.report import Report

app = CommandModule()


@app.command(
    help="Replace the data of an item with a file or stdin, byte for byte. The item keeps its "
    "place, lease and state. It is read before stdin; if its data changes meanwhile, nothing is "
    "written. Replacing data with nothing, or JSON with something else, must be confirmed. The "
    "old data is written to an undo file first.",
    examples=(
        "rwq set -q jobs 4f2a9c -f fixed.json",
        "rwq show -q jobs 4f2a9c -o data | sed s/htp:/http:/ | rwq set -q jobs 4f2a9c",
    ),
    exits={ExitStatus.NO: "nothing was written: no such item, it has changed, or declined"},
)
def set_(
    settings: Settings,
    item_id: Annotated[
        bytes,
        typer.Argument(
            metavar="ID", parser=parse_id, help="The item's ID.", autocompletion=offer_ids()
        ),
    ],
    file: Annotated[str, option("-f, --file FILE", "The new data; - is stdin.")] = "-",
    yes: YesToReplaceOption = False,
    dry_run: DryRunOption = False,
) -> Report:
    queue = open_queue(settings)
    item = item_to_change(settings, queue, item_id)
    if item is None:
        return data_report(settings, queue, "set", item_id, None, dry_run=dry_run)
    data = read_payload(settings.environment, file)
    if not dry_run:
        ask_about_data(settings, queue, item, data, yes=yes)
    return data_report(settings, queue, "set", item_id, (item, data), dry_run=dry_run)
