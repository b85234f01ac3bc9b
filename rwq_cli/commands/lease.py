"""`rwq lease`: lease items, the next ones or by ID."""

from collections.abc import Iterator, Sequence
from math import inf
from typing import Annotated

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import naming, open_queue, open_queues
from rwq_cli.cli.options import (
    DEFAULT_LEASE,
    NULL_RECORDS,
    DryRunOption,
    Duration,
    LeaseForOption,
    offer_ids,
    option,
    parse_id,
)
from rwq_cli.cli.settings import Settings
from rwq_cli.core.errors import InvalidArgument
from rwq_cli.core.items.lease import Shuffle, lease_from
from rwq_cli.core.items.lease_by_id import lease_ids
from rwq_cli.core.model import Item
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.escape import escaped
from rwq_cli.output.options import OutputFormat
from rwq_cli.views.items import ITEM_FIELDS, plain_names
from rwq_cli.views.leasing import refusal, waiting_note, write_leased

app = CommandModule()


@app.command(
    record=ITEM_FIELDS,
    help="Lease the next items and print them. Several queues are tried in order.",
    examples=(
        "rwq lease -q jobs",
        "rwq lease -q jobs -n 10 --for 1h -o jsonl",
        "rwq lease -q jobs --wait -o data > job.json",
        "rwq lease -q high -q normal -q low --wait -o jsonl",
        "rwq lease -q jobs --id 4f2a9c",
    ),
    exits={
        ExitStatus.NO: "nothing to lease (in time), or no --id item could be leased",
        ExitStatus.PARTIAL: "some of the --id items could not be leased",
    },
    null=NULL_RECORDS,
    plain={
        "an item": plain_names("leased now"),
        "of several queues": plain_names("leased now", has_queue=True),
    },
)
def lease(
    settings: Settings,
    number: Annotated[
        int | None, option("-n, --number N", "Lease at most N items.  [default: 1]", min=1)
    ] = None,
    lease_s: LeaseForOption = DEFAULT_LEASE,
    ids: Annotated[
        list[bytes] | None,
        option(
            "--id ID",
            "Lease this waiting, delayed or buried item; can be given several times.",
            parse_id,
            offer=offer_ids(),
        ),
    ] = None,
    wait: Annotated[bool, option("--wait", "Wait until there is an item to lease.")] = False,
    timeout_s: Annotated[
        Duration | None, option("--timeout DUR", "Wait, but at most this long.", Duration)
    ] = None,
    fair: Annotated[
        bool, option("--fair", "Try several queues in random order, reshuffled for each attempt.")
    ] = False,
    dry_run: DryRunOption = False,
) -> ExitStatus:
    if ids:
        if number is not None or wait or timeout_s is not None or fair:
            raise InvalidArgument(
                "--id cannot be used with -n, --wait, --timeout or --fair",
                "drop the other options",
            )
        return _lease_ids(settings, ids, lease_s, dry_run=dry_run)
    if not _wants_data(settings) and len(set(settings.queues)) > 1:
        raise InvalidArgument(
            "-o ids does not show which of several queues an item comes from",
            "use -o jsonl, csv or plain",
        )
    queues = open_queues(settings)
    shuffle: Shuffle | None = None
    if fair:
        import random

        shuffle = random.shuffle
    names = [queue.name for queue in queues]
    count = number or 1
    wait_s = timeout_s if timeout_s is not None else inf if wait else 0.0

    def note_waiting() -> None:
        settings.environment.note(waiting_note(names, wait_s))

    items = lease_from(
        queues,
        count,
        lease_s=lease_s,
        wait_s=wait_s,
        data=_wants_data(settings),
        shuffle=shuffle,
        before_waiting=None if settings.output.is_json else note_waiting,
        dry_run=dry_run,
    )
    shown = write_leased(
        settings.out,
        items,
        one=count == 1,
        dry_run=dry_run,
        empty=f"Nothing to lease in {', '.join(map(escaped, names))}.",
        id_batches=(batch.ids for batch in items.batches),
        has_queue=len(queues) > 1,
    )
    return ExitStatus.OK if shown else ExitStatus.NO


def _lease_ids(
    settings: Settings, ids: Sequence[bytes], lease_s: float, *, dry_run: bool
) -> ExitStatus:
    queue = open_queue(settings)
    attempts = lease_ids(queue, ids, lease_s=lease_s, data=_wants_data(settings), dry_run=dry_run)
    refusals: list[str] = []

    def leased() -> Iterator[Item]:
        for attempt in attempts:
            if attempt.is_leased:
                yield attempt.item
            else:
                lines = naming(settings, queue).lines()
                refusals.append(refusal(lines, queue.name, attempt.item))

    shown = write_leased(
        settings.out,
        leased(),
        one=len(ids) == 1,
        dry_run=dry_run,
        # If nothing was leased, the refusals are the output.
        empty=lambda: "\n".join(refusals),
    )
    if not refusals:
        return ExitStatus.OK
    if shown:
        settings.out.note("\n".join(refusals))
    return ExitStatus.PARTIAL if shown else ExitStatus.NO


def _wants_data(settings: Settings) -> bool:
    return settings.output is not OutputFormat.IDS
