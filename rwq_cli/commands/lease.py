"""`rwq lease`: lease items, the next ones or by ID."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Annotated

from rwq_cli.cli.command import CommandModule
from rwq_cli.cli.connect import command_lines, open_queue, open_queues
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
from rwq_cli.core.items.lease import lease_from, lease_ids
from rwq_cli.core.model import Item
from rwq_cli.core.queue import WorkQueue
from rwq_cli.exit_codes import ExitStatus
from rwq_cli.output.escape import escaped
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.outcomes import DRY_RUN
from rwq_cli.views.items import ITEM_FIELDS, columns_for, plain_names
from rwq_cli.views.leasing import held, refusal, waiting_note
from rwq_cli.views.listing import write_items

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
    # What is leased is printed.
    settings.environment.interrupted = ""
    wants_data = settings.output is not OutputFormat.IDS
    if ids:
        if number is not None or wait or timeout_s is not None or fair:
            raise InvalidArgument(
                "--id cannot be used with -n, --wait, --timeout or --fair",
                "drop the other options",
            )
        queue, refused = open_queue(settings), list[str]()

        def leased() -> Iterator[Item]:
            attempts = lease_ids(queue, ids, lease_s=lease_s, data=wants_data, dry_run=dry_run)
            for attempt in attempts:
                if attempt.is_leased:
                    yield attempt.item
                else:
                    lines = command_lines(settings, queue.connection)
                    refused.append(refusal(lines, queue.name, attempt.item))

        # If nothing was leased, the refusals are the output.
        shown = _write(settings, [queue], leased(), len(ids), lambda: "\n".join(refused), dry_run)
        if not refused:
            return ExitStatus.OK
        if shown:
            settings.environment.note("\n".join(refused))
        return ExitStatus.PARTIAL if shown else ExitStatus.NO
    if not wants_data and len(set(settings.queues)) > 1:
        raise InvalidArgument(
            "-o ids does not show which of several queues an item comes from",
            "use -o jsonl, csv or plain",
        )
    queues = open_queues(settings)
    shuffle = None
    if fair:
        import random

        shuffle = random.shuffle
    names = ", ".join(escaped(queue.name) for queue in queues)
    wait_s = timeout_s if timeout_s is not None else inf if wait else 0.0

    def note_waiting() -> None:
        settings.environment.note(waiting_note(names, wait_s))

    items = lease_from(
        queues,
        number or 1,
        lease_s=lease_s,
        wait_s=wait_s,
        data=wants_data,
        shuffle=shuffle,
        before_waiting=None if settings.output.is_json else note_waiting,
        dry_run=dry_run,
    )
    batches = (batch.ids for batch in items.batches)
    nothing = f"Nothing to lease in {names}."
    shown = _write(settings, queues, items, number or 1, lambda: nothing, dry_run, batches)
    return ExitStatus.OK if shown else ExitStatus.NO


def _write(
    settings: Settings,
    queues: Sequence[WorkQueue],
    items: Iterable[Item],
    number: int,
    empty: Callable[[], str],
    dry_run: bool,
    id_batches: Iterable[Sequence[bytes]] | None = None,
) -> int:
    """Write leased items; returns their number. Reading them, or their IDs, leases them."""
    environment = settings.environment

    def noted() -> Iterator[Item]:
        for at, item in enumerate(items):
            if dry_run and not at:
                environment.note(f"{DRY_RUN}these would be leased now")
            if settings.output is OutputFormat.DATA and (line := held(item)):
                environment.note(line)
            yield item

    try:
        shown = write_items(
            settings.out,
            noted(),
            columns_for("leased now"),
            empty=empty,
            has_queue=len(queues) > 1,
            # In a dry run, a note comes first.
            id_batches=None if dry_run else id_batches,
            unframed=number == 1,
        )
    except OSError as error:
        if not dry_run and not isinstance(error, BrokenPipeError):
            environment.error(
                "rwq: items may now be leased to this session; rwq release --mine puts them back"
            )
        raise
    if not shown and not settings.output.is_table:
        environment.note(empty())
    return shown
