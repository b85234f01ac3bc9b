"""What the commands that change the data of an item share: edit and set."""

from collections.abc import Iterator
from hashlib import sha256

from rwq_cli.cli.confirm import confirm, is_confirmed
from rwq_cli.cli.settings import Settings
from rwq_cli.commands.removing import open_undo_file, removal_report
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.items.set_data import read_item, set_data
from rwq_cli.core.model import Outcome, OutcomeBatch, Outcomes, Status
from rwq_cli.core.queue import WorkQueue
from rwq_cli.core.state.rules import is_guard
from rwq_cli.core.state.snapshot import ItemSnapshot
from rwq_cli.input.json_check import json_error
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Batch


def item_to_change(settings: Settings, queue: WorkQueue, item_id: bytes) -> ItemSnapshot | None:
    """The item to change; a note says who may have read its data already."""
    if item_id == b"-":
        raise InvalidArgument(
            "one ID is needed, and - means IDs on stdin", "change the items one by one"
        )
    item = read_item(queue, item_id)
    if item is not None and item.lease is not None and not is_guard(item.lease):
        left = ""
        if item.lease.ttl_ms is not None:
            left = f" for {human.duration(item.lease.ttl_ms / 1000)} more"
        settings.environment.note(
            f"note: {escaped(item_id)} is leased by {escaped(item.lease.holder)}{left}; "
            "its worker may have read the old data"
        )
    return item


def ask_about_data(
    settings: Settings, queue: WorkQueue, item: ItemSnapshot, data: bytes, *, yes: bool
) -> None:
    """Ask whether to replace JSON with data that is not JSON, or data with none; see `confirm`."""
    if item.data and not data:
        # As from an input that failed.
        what, note = "replace the data with nothing in {}", ""
    elif (reason := json_error(data)) is not None and json_error(item.data) is None:
        what, note = "replace JSON with data that is not JSON in {}", f" ({reason})"
    else:
        return
    if not is_confirmed(settings, yes=yes):
        confirm(settings, what, 1, escaped(queue.name), note=note)


def data_report(
    settings: Settings,
    queue: WorkQueue,
    verb: str,
    item_id: bytes,
    change: tuple[ItemSnapshot, bytes] | None,
    *,
    dry_run: bool,
) -> Batch[Outcome]:
    """The report of a verb that replaces the data of an item. Reading it does the work.

    Args:
        settings: The run's settings.
        queue: The queue.
        verb: The command.
        item_id: The ID.
        change: The item as it was read, and its new data; None if there is no such item.
        dry_run: Whether nothing is changed.
    """
    from rwq_cli.views.failures import changed_meanwhile

    written = None if change is None else sha256(change[1]).hexdigest()
    undo = open_undo_file(settings, queue, verb, written_sha256=written)

    def batches() -> Iterator[OutcomeBatch]:
        status = Status.MISSING
        if change is not None:
            status = set_data(queue, *change, undo, dry_run=dry_run)
        yield OutcomeBatch.of([Outcome(item_id, status)])

    return removal_report(
        settings,
        queue,
        Outcomes(batches()),
        undo,
        success=Status.SET,
        failures=(Status.MISSING,),
        dry_run=dry_run,
        reasons={Status.CHANGED: changed_meanwhile},
        stopped="stopped; the data may have been written",
    )
