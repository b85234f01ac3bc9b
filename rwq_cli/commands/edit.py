"""`rwq edit`: change the data of an item, in an editor or from a file."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.confirm import confirm, is_confirmed
from rwq_cli.cli.connect import command_lines, open_queue
from rwq_cli.cli.options import DryRunOption, YesToReplaceOption, offer_ids, option, parse_id
from rwq_cli.cli.settings import Settings
from rwq_cli.commands.undoing import Undo
from rwq_cli.core.errors import InvalidArgument, RwqError
from rwq_cli.core.items.set_data import edit_items, read_item
from rwq_cli.core.model import Outcome, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.state.rules import is_guard
from rwq_cli.core.state.snapshot import ItemSnapshot
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.input.editor import Draft, run_editor
from rwq_cli.input.payload import read_payload
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.json_text import json_error
from rwq_cli.views.command_lines import shell_word
from rwq_cli.views.failures import changed_meanwhile
from rwq_cli.views.outcomes import OUTCOME_FIELDS, kind_of

app = CommandModule()

_KIND = kind_of(Status.SET, (Status.MISSING,))


@app.command(
    record=OUTCOME_FIELDS,
    help="Edit the data of an item in $VISUAL, else $EDITOR, else vi; or take it from a file or "
    "stdin, byte for byte. The item keeps its place, lease and state. If its data has changed "
    "meanwhile, nothing is written, and edited text is kept in a file. A final newline that the "
    "editor has added is not written. Replacing data with nothing, or JSON with something else, "
    "must be confirmed. The old data is written to an undo file first.",
    examples=(
        "rwq edit -q jobs 4f2a9c",
        "EDITOR='code --wait' rwq edit -q jobs 4f2a9c",
        "rwq edit -q jobs 4f2a9c -f fixed.json",
        "rwq show -q jobs 4f2a9c -o data | sed s/htp:/http:/ | rwq edit -q jobs 4f2a9c -f -",
    ),
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
    file: Annotated[
        str | None,
        option("-f, --file FILE", "The new data, in place of an editor; - is stdin."),
    ] = None,
    yes: YesToReplaceOption = False,
    dry_run: DryRunOption = False,
) -> ExitStatus:
    if item_id == b"-":
        raise InvalidArgument(
            "one ID is needed, and - means IDs on stdin", "change the items one by one"
        )
    queue = open_queue(settings)
    # Before stdin is read or an editor runs: what changes meanwhile is not overwritten.
    item = read_item(queue, item_id)
    draft, data = None, b""
    if item is not None:
        _note_lease(settings, item)
        draft = _draft(settings, queue, item) if file is None else None
    with _kept(settings, draft):
        if item is not None:
            if draft is not None:
                run_editor(settings.environment, draft.path)
                data = draft.read()
            elif file is not None:
                data = read_payload(settings.environment, file)
            if not dry_run:
                _confirm(settings, queue, item, data, yes=yes)
        undo = Undo(
            settings,
            queue,
            "edit",
            stopped="stopped; the data may have been written",
        )
        reasons = {Status.CHANGED: changed_meanwhile}
        with undo.outcomes(_KIND, dry_run=dry_run, reasons=reasons) as out:
            outcome = Outcome(item_id, Status.MISSING)
            if item is not None:
                (outcome,) = edit_items(queue, [(item, data)], undo, dry_run=dry_run)
            out.row(outcome)
            status = outcome.status
        if draft is not None:
            if status is Status.UNCHANGED or (status is Status.SET and not dry_run):
                draft.delete()
            else:
                _name_draft(settings, queue, item_id, draft, is_missing=status is Status.MISSING)
    return out.finish(undo_file=undo.name)


def _note_lease(settings: Settings, item: ItemSnapshot) -> None:
    """Say who may have read the data already."""
    if item.lease is None or is_guard(item.lease):
        return
    left = ""
    if item.lease.ttl_ms is not None:
        left = f" for {human.duration(item.lease.ttl_ms / 1000)} more"
    settings.environment.note(
        f"note: {escaped(item.item_id)} is leased by {escaped(item.lease.holder)}{left}; "
        "its worker may have read the old data"
    )


def _draft(settings: Settings, queue: WorkQueue, item: ItemSnapshot) -> Draft:
    """A file with the data, for an editor.

    Raises:
        InvalidArgument: The data is binary.
    """
    try:
        is_text = "\0" not in item.data.decode()
    except UnicodeDecodeError:
        is_text = False
    if not is_text:
        lines = command_lines(settings, queue.connection)
        shown = lines.of_item("show -o data", queue.name, item.item_id)
        raise InvalidArgument(
            f"the data of {escaped(item.item_id)} is binary", f"see {shown}, and rwq edit -f FILE"
        )
    return Draft(item.data, item.item_id, ".json" if json_error(item.data) is None else "")


def _confirm(
    settings: Settings, queue: WorkQueue, item: ItemSnapshot, data: bytes, *, yes: bool
) -> None:
    """Ask whether to replace JSON with data that is not JSON, or data with none."""
    if item.data and not data:
        # As from an input that failed.
        what, note = "replace the data with nothing in {}", ""
    elif (reason := json_error(data)) is not None and json_error(item.data) is None:
        what, note = "replace JSON with data that is not JSON in {}", f" ({reason})"
    else:
        return
    if not is_confirmed(settings, yes=yes):
        confirm(settings, what, 1, escaped(queue.name), note=note)


def _name_draft(
    settings: Settings, queue: WorkQueue, item_id: bytes, draft: Draft, *, is_missing: bool
) -> None:
    """Say where the text is that was not written, and how to write it."""
    path = os.fsencode(draft.path)
    lines = command_lines(settings, queue.connection)
    again = lines.of_item(f"edit -f {shell_word(path)}", queue.name, item_id)
    if is_missing:
        words = f"add --format raw --id {shell_word(item_id)} -f {shell_word(path)}"
        again = lines.of_queue(words, queue.name)
    settings.environment.error(f"rwq: your text is in {escaped(path)}; to write it: {again}")


@contextmanager
def _kept(settings: Settings, draft: Draft | None) -> Iterator[None]:
    """If anything goes wrong, name the file with the edited text, or delete it if there is none."""
    try:
        yield
    except BaseException as error:
        if draft is None:
            raise
        if not draft.is_changed:
            draft.delete()
            raise
        where = f"your text is in {draft.path}"
        if isinstance(error, RwqError):
            error.hint = f"{error.hint}; {where}" if error.hint else where
        else:
            settings.environment.error(f"rwq: {where}")
        raise
