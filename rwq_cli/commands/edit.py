"""`rwq edit`: edit the data of an item in an editor."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.completing import offer_ids
from rwq_cli.cli.connect import command_lines, open_queue
from rwq_cli.cli.options import DryRunOption, YesToReplaceOption, parse_id
from rwq_cli.cli.settings import Settings
from rwq_cli.commands.replacing import ask_about_data, data_report, item_to_change
from rwq_cli.core.errors import InvalidArgument, RwqError
from rwq_cli.core.model import OutcomeBatch, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.state.snapshot import ItemSnapshot
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.input.editor import Draft, run_editor
from rwq_cli.input.json_check import json_error
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Report
from rwq_cli.views.command_lines import shell_word

app = CommandModule()


@app.command(
    help="Edit the data of an item in $VISUAL, else $EDITOR, else vi. The item keeps its place, "
    "lease and state. If its data has changed meanwhile, nothing is written, and the edited text "
    "is kept in a file. A final newline that the editor has added is not written. The old data is "
    "written to an undo file first.",
    examples=("rwq edit -q jobs 4f2a9c", "EDITOR='code --wait' rwq edit -q jobs 4f2a9c"),
    exits={
        ExitStatus.OK: "done, even if nothing was changed",
        ExitStatus.NO: "nothing was written: no such item, it has changed meanwhile, the editor "
        "failed, or declined",
    },
)
def edit(
    settings: Settings,
    item_id: Annotated[
        bytes,
        typer.Argument(
            metavar="ID", parser=parse_id, help="The item's ID.", autocompletion=offer_ids()
        ),
    ],
    yes: YesToReplaceOption = False,
    dry_run: DryRunOption = False,
) -> Report:
    queue = open_queue(settings)
    item = item_to_change(settings, queue, item_id)
    if item is None:
        return data_report(settings, queue, "edit", item_id, None, dry_run=dry_run)
    _refuse_binary(settings, queue, item)
    draft = Draft(item.data, item_id, ".json" if json_error(item.data) is None else "")
    with _kept(settings, draft):
        run_editor(settings.environment, draft.path)
        data = draft.read()
        if not dry_run:
            ask_about_data(settings, queue, item, data, yes=yes)
    report = data_report(settings, queue, "edit", item_id, (item, data), dry_run=dry_run)

    def with_draft() -> Iterator[OutcomeBatch]:
        with _kept(settings, draft):
            for batch in report.batches:
                if batch.count(Status.UNCHANGED) or (batch.count(Status.SET) and not dry_run):
                    draft.delete()
                else:
                    path = os.fsencode(draft.path)
                    lines = command_lines(settings, queue.connection)
                    again = lines.of_item(f"set -f {shell_word(path)}", queue.name, item_id)
                    if batch.count(Status.MISSING):
                        words = f"add --format raw --id {shell_word(item_id)} -f {shell_word(path)}"
                        again = lines.of_queue(words, queue.name)
                    settings.environment.error(
                        f"rwq: your text is in {escaped(path)}; to write it: {again}"
                    )
                yield batch

    return replace(report, batches=with_draft())


def _refuse_binary(settings: Settings, queue: WorkQueue, item: ItemSnapshot) -> None:
    try:
        item.data.decode()
    except UnicodeDecodeError:
        pass
    else:
        if b"\0" not in item.data:
            return
    lines = command_lines(settings, queue.connection)
    shown = lines.of_item("show -o data", queue.name, item.item_id)
    raise InvalidArgument(
        f"the data of {escaped(item.item_id)} is binary", f"see {shown}, and rwq set"
    )


@contextmanager
def _kept(settings: Settings, draft: Draft) -> Iterator[None]:
    """If anything goes wrong, name the file with the edited text, or delete it if there is none."""
    try:
        yield
    except BaseException as error:
        if not draft.is_changed:
            draft.delete()
            raise
        where = f"your text is in {draft.path}"
        if isinstance(error, RwqError):
            error.hint = f"{error.hint}; {where}" if error.hint else where
        else:
            settings.environment.error(f"rwq: {where}")
        raise
