"""`rwq lease`: take items."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated

import typer

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import open_queue, open_queues
from rwq_cli.cli.options import DryRunOption, NullRecordsOption
from rwq_cli.cli.settings import OutputFormat, Settings
from rwq_cli.core.batches import LONGEST_LIST
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.handle import Queue
from rwq_cli.core.model import Item, State
from rwq_cli.core.queue import FOREVER, WorkQueue, lease_from, would_lease_from
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.input.durations import parse_duration
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.report import Column, Listing, Report
from rwq_cli.views.outcomes import DRY_RUN
from rwq_cli.views.records import DATA, ID, QUEUE, SIZE, TIME_LEFT, item_view

app = CommandModule()

_COLUMNS = (ID, TIME_LEFT, SIZE, DATA)


@app.command(
    help="Take the next items under a lease, and print them. Of several queues, those of the first "
    "that has any.",
    examples=(
        "rwq lease -q jobs",
        "rwq lease -q jobs -n 10 --for 1h -o jsonl",
        "rwq lease -q jobs --wait -o data > job.json",
        "rwq lease -q high -q normal -q low --wait -o jsonl",
        "rwq lease -q jobs --id 4f2a9c",
    ),
    exits={
        ExitStatus.NO: "there was nothing to lease, in time; or none of the --id waits",
        ExitStatus.PARTIAL: "some of the --id do not wait",
    },
)
def lease(
    settings: Settings,
    number: Annotated[
        int | None,
        typer.Option("-n", "--number", metavar="N", min=1, help="How many items at most. Else 1."),
    ] = None,
    lease_for: Annotated[
        str, typer.Option("--for", metavar="DUR", help="How long the lease lasts.")
    ] = "5m",
    item_id: Annotated[
        list[str] | None,
        typer.Option(
            "--id",
            metavar="ID",
            help="This item, wherever it waits, also delayed or buried; can be given several "
            "times.",
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until there is an item.")] = False,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="DUR", help="Wait for so long at most.")
    ] = None,
    fair: Annotated[
        bool,
        typer.Option("--fair", help="Try several queues in a random order, a new one each time."),
    ] = False,
    dry_run: DryRunOption = False,
    null: NullRecordsOption = False,
) -> Report:
    lease_s = parse_duration(lease_for)
    if lease_s < 0.001:
        raise InvalidArgument("a lease must last at least 1ms", "give --for a longer time")
    if item_id:
        if number is not None or wait or timeout is not None or fair:
            raise InvalidArgument(
                "--id excludes -n, --wait, --timeout and --fair", "it takes that item now or never"
            )
        if "" in item_id:
            raise InvalidArgument("an ID is empty", "an unset variable in the script?")
        ids = list(map(os.fsencode, item_id))
        return _by_id(settings, ids, lease_s=lease_s, dry_run=dry_run, null_separated=null)
    wait_s = FOREVER if wait else 0.0
    if timeout is not None:
        wait_s = parse_duration(timeout)
    wants_ids = settings.output is OutputFormat.IDS
    if wants_ids and len(set(settings.queues)) > 1:
        raise InvalidArgument(
            "IDs alone do not say which of several queues they are of",
            "use -o jsonl, csv or plain",
        )
    queues = open_queues(settings)
    shuffle: Callable[[list[Queue]], object] | None = None
    if fair:
        import random

        shuffle = random.shuffle
    count = min(number or 1, LONGEST_LIST)
    id_batches = None
    records: Iterable[Item]
    if dry_run:
        settings.environment.note(_DRY_RUN)
        records = would_lease_from(queues, count, shuffle=shuffle)
    else:
        leased = lease_from(
            queues, count, lease_s=lease_s, wait_s=wait_s, data=not wants_ids, shuffle=shuffle
        )
        records, id_batches = leased, (batch.ids for batch in leased.batches)
    columns: Sequence[Column[Item]] = _COLUMNS
    if len(queues) > 1:
        # For scripts that count fields, what is added comes last.
        is_plain = settings.output is OutputFormat.PLAIN
        columns = (*_COLUMNS, QUEUE) if is_plain else (QUEUE, *_COLUMNS)
    return Listing(
        view=item_view(*columns),
        records=records,
        empty=f"Nothing to lease in {', '.join(escaped(queue.name) for queue in queues)}.",
        none_is_no=True,
        one_only=count == 1,
        null_separated=null,
        id_batches=id_batches,
    )


_DRY_RUN = f"{DRY_RUN}these would be leased now"


def _by_id(
    settings: Settings,
    ids: list[bytes],
    *,
    lease_s: float,
    dry_run: bool,
    null_separated: bool,
) -> Listing[Item]:
    queue = open_queue(settings)
    wants_data = settings.output is not OutputFormat.IDS
    picked = queue.lease_ids(ids, lease_s=lease_s, data=wants_data, dry_run=dry_run)
    refusals: list[str] = []

    def taken() -> Iterator[Item]:
        for number, each in enumerate(picked):
            if dry_run and number == 0:
                settings.environment.note(_DRY_RUN)
            if each.is_taken:
                yield each.item
            else:
                refusals.append(_refusal(queue, each.item))
        # If that was all, it is the answer no.
        listing.empty = "\n".join(refusals)

    listing = Listing(
        view=item_view(*_COLUMNS),
        records=taken(),
        empty="",
        none_is_no=True,
        one_only=len(ids) == 1,
        null_separated=null_separated,
        closing=lambda: "\n".join(refusals) if any_taken() else None,
        status=lambda: ExitStatus.PARTIAL if refusals and any_taken() else None,
    )

    def any_taken() -> bool:
        return len(refusals) < len(set(ids))

    return listing


def _refusal(queue: WorkQueue, item: Item) -> str:
    """Why an item was not leased, and what to do about it."""
    from rwq_cli.output.shell_quoting import command_line

    shown = escaped(item.item_id)
    if item.lease is not None:
        holder = escaped(item.lease.holder) or "somebody unknown"
        left = "without expiry"
        if item.lease.ttl_ms is not None:
            left = f"for {human.duration(item.lease.ttl_ms / 1000)} more"
        ends = command_line("release --force", queue.name, item.item_id)
        return f"{shown} is leased by {holder} {left}; to end that: {ends}"
    if item.state is State.GONE:
        return f"no such item: {shown}"
    returns = command_line("release", queue.name, item.item_id)
    clean = "light" if item.state is State.ABANDONED else "deep"
    return (
        f"{shown} is {item.state.value} and does not wait; to put it back: {returns} "
        f"(so does a {clean} clean)"
    )
