"""`rwq lease`: lease items, the next ones or by ID."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import inf
from random import shuffle
from time import time
from typing import Annotated, NamedTuple

from rwq_cli.cli import options
from rwq_cli.cli.connect import make_command_lines, open_queue, open_queues
from rwq_cli.cli.listing import write_items
from rwq_cli.commands import ExitStatus, InvalidArgument, Settings, command, option
from rwq_cli.core.items.lease import Leased, lease_from, lease_ids
from rwq_cli.core.items.schedule import release
from rwq_cli.core.model import Item, State
from rwq_cli.core.queue import WorkQueue
from rwq_cli.output import human
from rwq_cli.output.escape import escaped
from rwq_cli.output.options import OutputFormat
from rwq_cli.output.tally import DRY_RUN
from rwq_cli.views.command_lines import CommandLines
from rwq_cli.views.items import ITEM_FIELDS, PLAIN_OF_SEVERAL, plain_names


def _lease_note(item: Item) -> str | None:
    """Return a note with the ID and the lease of an item, of which only the data is shown."""
    if item.lease is None or (ttl_ms := item.lease.ttl_ms) is None:
        return None
    time_left, ends = human.duration(ttl_ms / 1000), human.moment(round(1000 * time() + ttl_ms))
    return f"leased {escaped(item.item_id)} of {escaped(item.queue)} for {time_left}, until {ends}"


def _refusal(lines: CommandLines, queue: bytes, item: Item) -> str:
    item_id = escaped(item.item_id)
    if item.lease is not None:
        time_left = "without expiry"
        if item.lease.ttl_ms is not None:
            time_left = f"for {human.duration(item.lease.ttl_ms / 1000)} more"
        ends = lines.of_item("release --force", queue, item.item_id)
        holder = escaped(item.lease.holder) or "an unknown holder"
        return f"{item_id} is leased by {holder} {time_left}; to end that lease: {ends}"
    if item.state is State.GONE:
        return f"no such item: {item_id}"
    # A buried one is a copy, which only the move that made it may return.
    is_lost = item.state not in (State.WRONG_TYPE, State.BURIED)
    verb, what = ("release", "to return it") if is_lost else ("show", "why")
    command = lines.of_item(verb, queue, item.item_id)
    return f"{item_id} is {item.state.value}, not waiting; {what}: {command}"


class LeaseOptions(NamedTuple):
    """What to lease: the options of the command."""

    settings: Settings
    number: Annotated[
        int | None, option("-n, --number N", "Lease at most N items.  [default: 1]", min=1)
    ] = None
    lease_s: options.LeaseForOption = options.DEFAULT_LEASE
    ids: Annotated[
        list[bytes] | None,
        option(
            "--id ID",
            "This item, wherever it waits (repeatable).",
            options.parse_id,
            options.offer_ids(),
        ),
    ] = None
    wait: Annotated[bool, option("--wait", "Wait until there is an item to lease.")] = False
    timeout_s: options.TimeoutOption = None
    fair: options.FairOption = False
    dry_run: options.DryRunOption = False

    @property
    def wait_s(self) -> float:
        if self.timeout_s is not None:
            return self.timeout_s
        return inf if self.wait else 0.0

    @property
    def wanted(self) -> int:
        """How many items are wanted."""
        return len(self.ids) if self.ids else self.number or 1

    @property
    def needs_data(self) -> bool:
        return self.settings.output is not OutputFormat.IDS

    def check(self) -> None:
        """Raise if the output would not tell which queue an item comes from."""
        if not (self.ids or self.needs_data) and len(set(self.settings.queues)) > 1:
            raise InvalidArgument(
                "-o ids does not show which of several queues an item comes from",
                "use -o jsonl, csv or plain",
            )

    def next_items(self, queues: Sequence[WorkQueue], names: str) -> Leased:
        """Return the next items, which are leased as they are read."""
        limit = "" if self.wait_s == inf else f", {human.duration(self.wait_s)} at most"
        note = partial(self.settings.environment.note, f"waiting for an item in {names}{limit}")
        return lease_from(
            queues,
            self.wanted,
            lease_s=self.lease_s,
            wait_s=self.wait_s,
            data=self.needs_data,
            shuffle=shuffle if self.fair else None,
            before_waiting=None if self.settings.output.is_json else note,
            dry_run=self.dry_run,
        )

    def chosen_items(
        self, queue: WorkQueue, ids: Sequence[bytes], refusals: list[str]
    ) -> Iterator[Item]:
        """Yield the items with these IDs that could be leased; why others could not is noted."""
        results = lease_ids(
            queue, ids, lease_s=self.lease_s, data=self.needs_data, dry_run=self.dry_run
        )
        for item, is_leased in results:
            if is_leased:
                yield item
            else:
                lines = make_command_lines(self.settings, queue.connection)
                refusals.append(_refusal(lines, queue.name, item))

    def with_notes(self, items: Iterable[Item], leased: list[Item]) -> Iterator[Item]:
        """Yield the items, after the notes on each; a single one is `leased` from then on."""
        environment = self.settings.environment
        for item in items:
            leased += [item] if self.wanted == 1 else []
            if self.dry_run:
                environment.note(f"{DRY_RUN}these would be leased now", once=True)
            if self.settings.output is OutputFormat.DATA and (line := _lease_note(item)):
                environment.note(line)
            yield item


def _give_back(settings: Settings, queues: Sequence[WorkQueue], items: Sequence[Item]) -> None:
    """Release what could not be printed, as on a terminal that is gone: nobody else knows of it."""
    by_name = {queue.name: queue for queue in queues}
    text = "items may now be leased to this session; rwq release --mine puts them back"
    for item in items:
        queue, ids = by_name[item.queue], [item.item_id]
        (outcome,) = release(queue, ids, own_only=True, front=True, grace_s=0.0)
        text = f"{escaped(item.item_id)} could not be printed, and is {outcome.status}"
    settings.environment.error(f"rwq: {text}")


@command(
    record=ITEM_FIELDS,
    no="nothing to lease (in time), or no --id item could be leased",
    partial="some of the --id items could not be leased",
    null=options.NULL_RECORDS,
    plain={"an item": plain_names("leased now"), **PLAIN_OF_SEVERAL},
    # The leased items are printed.
    unfinished="",
    excludes=["--id -n", "--id --wait", "--id --timeout", "--id --fair"],
)
def lease(settings: Settings, leasing: LeaseOptions) -> ExitStatus:
    """Lease the next items and print them. Several queues are tried in order.

    rwq lease -q jobs
    rwq lease -q jobs -n 10 --for 1h -o jsonl
    rwq lease -q jobs --wait -o data > job.json
    rwq lease -q high -q normal -q low --wait -o jsonl
    rwq lease -q jobs --id 4f2a9c
    """
    environment, ids = settings.environment, leasing.ids
    leasing.check()
    queues = [open_queue(settings)] if ids else open_queues(settings)
    names = ", ".join(escaped(queue.name) for queue in queues)
    refusals: list[str] = []
    # None in a dry run, where a note comes first.
    id_batches = None
    items: Iterable[Item]
    if ids:
        items = leasing.chosen_items(queues[0], ids, refusals)
    else:
        items = leased = leasing.next_items(queues, names)
        id_batches = None if leasing.dry_run else (batch.ids for batch in leased.batches)

    def nothing() -> str:
        return "\n".join(refusals) or f"Nothing to lease in {names}."

    leased_items: list[Item] = []
    try:
        # Reading the items, or their IDs, leases them.
        count = write_items(
            settings.out,
            leasing.with_notes(items, leased_items),
            "leased now",
            empty=nothing,
            has_queue=len(queues) > 1,
            id_batches=id_batches,
            unframed=leasing.wanted == 1,
        )
        environment.stdout.flush()
    except OSError as error:
        # A reader that has closed its pipe may have read what it wanted.
        if not (leasing.dry_run or isinstance(error, BrokenPipeError)):
            _give_back(settings, queues, leased_items)
        raise
    if count and refusals:
        environment.note("\n".join(refusals))
        return ExitStatus.PARTIAL
    if not count and not settings.output.is_table:
        environment.note(nothing())
    return ExitStatus.OK if count else ExitStatus.NO
