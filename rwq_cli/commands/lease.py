"""`rwq lease`: lease items, the next ones or by ID."""

from collections.abc import Iterable, Iterator
from functools import partial
from math import inf
from random import shuffle
from time import time
from typing import Annotated

from rwq_cli.cli import options
from rwq_cli.cli.connect import command_lines, open_queue, open_queues
from rwq_cli.cli.listing import write_items
from rwq_cli.commands import Duration, ExitStatus, InvalidArgument, Settings, command, option
from rwq_cli.core.items.lease import lease_from, lease_ids
from rwq_cli.core.model import Item, State
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.outcomes import DRY_RUN
from rwq_cli.views.command_lines import CommandLines
from rwq_cli.views.items import ITEM_FIELDS, plain_names


def _held(item: Item) -> str | None:
    """Return a note with the ID and the lease of an item, of which only the data is shown."""
    if item.lease is None or (ttl_ms := item.lease.ttl_ms) is None:
        return None
    left, ends = human.duration(ttl_ms / 1000), human.moment(round(1000 * time() + ttl_ms))
    return f"leased {escaped(item.item_id)} of {escaped(item.queue)} for {left}, until {ends}"


def _refusal(lines: CommandLines, queue: bytes, item: Item) -> str:
    shown = escaped(item.item_id)
    if item.lease is not None:
        left = "without expiry"
        if item.lease.ttl_ms is not None:
            left = f"for {human.duration(item.lease.ttl_ms / 1000)} more"
        ends = lines.of_item("release --force", queue, item.item_id)
        holder = escaped(item.lease.holder) or "an unknown holder"
        return f"{shown} is leased by {holder} {left}; to end that lease: {ends}"
    if item.state is State.GONE:
        return f"no such item: {shown}"
    # A buried one is a copy, which only the move that made it may return.
    is_lost = item.state not in (State.WRONG_TYPE, State.BURIED)
    verb, what = ("release", "to return it") if is_lost else ("show", "why")
    command = lines.of_item(verb, queue, item.item_id)
    return f"{shown} is {item.state.value}, not waiting; {what}: {command}"


@command(
    record=ITEM_FIELDS,
    no="nothing to lease (in time), or no --id item could be leased",
    partial="some of the --id items could not be leased",
    null=options.NULL_RECORDS,
    plain={"an item": plain_names("leased now"), "of several queues": "the same, then queue"},
)
def lease(
    settings: Settings,
    number: Annotated[
        int | None, option("-n, --number N", "Lease at most N items.  [default: 1]", min=1)
    ] = None,
    lease_s: options.LeaseForOption = options.DEFAULT_LEASE,
    ids: Annotated[
        list[bytes] | None,
        option(
            "--id ID",
            "This item, wherever it waits; repeatable.",
            options.parse_id,
            options.offer_ids(),
        ),
    ] = None,
    wait: Annotated[bool, option("--wait", "Wait until there is an item to lease.")] = False,
    timeout_s: Annotated[Duration | None, option("--timeout DUR", "Wait up to this long.")] = None,
    fair: Annotated[bool, option("--fair", "Try several queues in random order.")] = False,
    dry_run: options.DryRunOption = False,
) -> ExitStatus:
    """Lease the next items and print them. Several queues are tried in order.

    rwq lease -q jobs
    rwq lease -q jobs -n 10 --for 1h -o jsonl
    rwq lease -q jobs --wait -o data > job.json
    rwq lease -q high -q normal -q low --wait -o jsonl
    rwq lease -q jobs --id 4f2a9c
    """
    environment, wants_data = settings.environment, settings.output is not OutputFormat.IDS
    # The leased items are printed, which says what was done.
    environment.interrupted = ""
    if ids and (number is not None or wait or timeout_s is not None or fair):
        raise InvalidArgument(
            "--id cannot be used with -n, --wait, --timeout or --fair", "drop the other options"
        )
    if not (ids or wants_data) and len(set(settings.queues)) > 1:
        raise InvalidArgument(
            "-o ids does not show which of several queues an item comes from",
            "use -o jsonl, csv or plain",
        )
    queues = [open_queue(settings)] if ids else open_queues(settings)
    names = ", ".join(escaped(queue.name) for queue in queues)
    refused: list[str] = []
    found: Iterable[tuple[Item, bool]]
    # None in a dry run, where a note comes first.
    id_batches = None
    if ids:
        found = lease_ids(queues[0], ids, lease_s=lease_s, data=wants_data, dry_run=dry_run)
    else:
        wait_s = timeout_s if timeout_s is not None else inf if wait else 0.0
        limit = "" if wait_s == inf else f", {human.duration(wait_s)} at most"
        note_waiting = partial(environment.note, f"waiting for an item in {names}{limit}")
        leased = lease_from(
            queues,
            number or 1,
            lease_s=lease_s,
            wait_s=wait_s,
            data=wants_data,
            shuffle=shuffle if fair else None,
            before_waiting=None if settings.output.is_json else note_waiting,
            dry_run=dry_run,
        )
        found = ((item, True) for item in leased)
        id_batches = None if dry_run else (batch.ids for batch in leased.batches)

    def noted() -> Iterator[Item]:
        for item, is_leased in found:
            if not is_leased:
                lines = command_lines(settings, queues[0].connection)
                refused.append(_refusal(lines, queues[0].name, item))
                continue
            if dry_run:
                environment.note(f"{DRY_RUN}these would be leased now", once=True)
            if settings.output is OutputFormat.DATA and (line := _held(item)):
                environment.note(line)
            yield item

    def nothing() -> str:
        return "\n".join(refused) or f"Nothing to lease in {names}."

    try:
        # Reading the items, or their IDs, leases them.
        shown = write_items(
            settings.out,
            noted(),
            "leased now",
            empty=nothing,
            has_queue=len(queues) > 1,
            id_batches=id_batches,
            unframed=(len(ids) if ids else number or 1) == 1,
        )
    except OSError as error:
        if not dry_run and not isinstance(error, BrokenPipeError):
            environment.error(
                "rwq: items may now be leased to this session; rwq release --mine puts them back"
            )
        raise
    if shown and refused:
        environment.note("\n".join(refused))
        return ExitStatus.PARTIAL
    if not shown and not settings.output.is_table:
        environment.note(nothing())
    return ExitStatus.OK if shown else ExitStatus.NO
